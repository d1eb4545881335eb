"""The functions that test_training.py runs on four ranks, over groups of 1 to 4 of them. Pickled by value.

Each case returns errors and counts against one process that trains on all ranks' data, and asserts nothing.
"""

import functools
import sys

import cloudpickle

from tests.data_parallel.zero import models

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(models)

CLIP = 0.7
STEPS = 4


@functools.lru_cache(None)
def alone(optimizer, size):
    """(weights, optimizer's state dict, norms before clipping) after the steps of `everything`."""
    import torch

    model = models.Net().double()
    kind, options = models.OPTIMIZERS[optimizer]
    plain = kind(models.param_groups(model), **options)
    norms = []
    for step in range(STEPS):
        batches = models.data(step, size, passes=2 if step in (1, 3) else 1)
        models.mean_backward(model, batches, size, spare=step != 2)
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP).item())
        plain.step()
    return model.state_dict(), plain.state_dict(), norms


def everything(stage, size, comm, optimizer="AdamW", **settings):
    """Four steps in float64 with groups, clipping, accumulation, frozen and tied weights and a part that one step does
    not use: the largest errors of weights, norms and optimizer's states."""
    from labs_helpers.data_parallel import clip_gradients
    from labs_helpers.data_parallel.zero.state import whole_state

    group = models.group_of(comm, size)
    if group is None:
        return None
    model = models.Net(seed=comm.rank).double()  # rank 0's counts
    settings = {"find_unused_parameters": True} | settings
    zero = models.make(stage, model, optimizer, models.param_groups(model), group=group, **settings)
    weights, states, expected = alone(optimizer, size)
    norms = []
    for step in range(STEPS):
        zero.group.reset()
        batches = models.data(step, size, passes=2 if step in (1, 3) else 1)
        with zero.no_sync():
            for one_pass in batches[:-1]:
                (models.loss_of(model, one_pass[comm.rank]) / len(batches)).backward()
        (models.loss_of(model, batches[-1][comm.rank], spare=step != 2) / len(batches)).backward()
        norms.append(clip_gradients(zero, CLIP).item())
        zero.step()
        zero.zero_grad()
    reductions = zero.group.calls["reduce_scatter"] + zero.group.calls["all_reduce"]
    state = whole_state(zero)
    found = state["optimizer"]
    return {
        "weights": models.largest_error(state["model"], weights),
        "states": models.largest_error(models.by_entry(found), models.by_entry(states)),
        "norms": max(abs(n / e - 1) for n, e in zip(norms, expected, strict=True)),
        "groups": found["param_groups"] == states["param_groups"],
        "clipped": sum(n > CLIP for n in expected),
        "reductions": reductions - 2 * (size > 1),  # without those of the flags and the norm
        "buckets": sum(bucket.trained for bucket in zero.buckets),
        "left": [name for name, p in model.named_parameters() if p.grad is not None],
    }


@functools.lru_cache(None)
def plainly(optimizer, size):
    """The weights and states of three plain steps in float32."""
    model = models.Net()
    kind, options = models.OPTIMIZERS[optimizer]
    plain = kind(models.param_groups(model), **options)
    for step in range(3):
        models.mean_backward(model, models.data(step, size), size)
        plain.step()
    return model.state_dict(), plain.state_dict()


def exact(stage, optimizer, size, comm):
    """Errors after three plain steps in float32, 0.0 only where every bit is the same."""
    from labs_helpers.data_parallel.zero.state import whole_state

    group = models.group_of(comm, size)
    if group is None:
        return None
    model = models.Net(seed=comm.rank)
    zero = models.make(stage, model, optimizer, models.param_groups(model), group=group)
    for step in range(3):
        models.loss_of(model, models.data(step, size)[0][comm.rank]).backward()
        zero.step()
        zero.zero_grad()
    weights, states = plainly(optimizer, size)
    state = whole_state(zero)
    return (
        models.largest_error(state["model"], weights),
        models.largest_error(models.by_entry(state["optimizer"]), models.by_entry(states)),
    )
