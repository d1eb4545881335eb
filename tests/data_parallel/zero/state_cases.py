"""Checkpoints, master weights, groups added later, and torch's own sharding, on four ranks. Pickled by value."""

import copy
import sys
import warnings

import cloudpickle

from tests.data_parallel.zero import models

cloudpickle.register_pickle_by_value(sys.modules[__name__])
cloudpickle.register_pickle_by_value(models)


def step(zero, model, number, ranks, rank):
    models.loss_of(model, models.data(number, ranks)[0][rank]).backward()
    zero.step()
    zero.zero_grad()


def plain_steps(model, optimizer, numbers, ranks):
    for number in numbers:
        models.mean_backward(model, models.data(number, ranks), ranks)
        optimizer.step()


def resumed(before, after, optimizer, comm):
    """Two steps on four ranks in stage `before`, a checkpoint, two more on 1, 2 and 3 ranks in stage `after` and on one
    process without ZeRO; then that one's checkpoint, and two more. Errors of weights by where it went on."""
    from labs_helpers.data_parallel.zero.state import load_whole_state, whole_state

    kind, options = models.OPTIMIZERS[optimizer]
    model = models.Net(seed=comm.rank).double()
    zero = models.make(before, model, optimizer, models.param_groups(model), group=models.group_of(comm, 4))
    for number in (0, 1):
        step(zero, model, number, 4, comm.rank)
    on_one = whole_state(zero, rank=0)
    state = comm.bcast(on_one)
    errors = {"rank 0 alone": float(bool(on_one) != (comm.rank == 0))}

    plain = models.Net(seed=8).double()
    single = kind(models.param_groups(plain), lr=9.0)  # what the checkpoint has holds
    plain.load_state_dict(state["model"])
    single.load_state_dict(copy.deepcopy(state["optimizer"]))  # an optimizer works on in what it was given
    expected = models.Net().double()
    reference = kind(models.param_groups(expected), **options)
    plain_steps(expected, reference, (0, 1), 4)
    errors["saved"] = models.largest_error(plain.state_dict(), expected.state_dict())
    plain_steps(plain, single, (2, 3), 1)
    plain_steps(expected, reference, (2, 3), 1)
    errors["one process"] = models.largest_error(plain.state_dict(), expected.state_dict())

    for size in (1, 2, 3):
        group = models.group_of(comm, size)
        if group is None:
            continue
        expected = models.Net(seed=9).double()
        expected.load_state_dict(state["model"])
        reference = kind(models.param_groups(expected), **options)
        reference.load_state_dict(copy.deepcopy(state["optimizer"]))
        plain_steps(expected, reference, (2, 3), size)
        model = models.Net(seed=7).double()
        zero = models.make(after, model, optimizer, models.param_groups(model), group=group)
        step(zero, model, 5, size, comm.rank)  # is to leave no trace
        models.loss_of(model, models.data(5, size)[0][comm.rank]).backward()
        load_whole_state(zero, state)
        for number in (2, 3):
            step(zero, model, number, size, comm.rank)
        found = whole_state(zero)
        errors[size] = models.largest_error(found["model"], expected.state_dict())
        entries = models.by_entry(found["optimizer"]), models.by_entry(reference.state_dict())
        errors[size, "states"] = models.largest_error(*entries)
        load_whole_state(zero, {"model": plain.state_dict(), "optimizer": single.state_dict()})
        again = whole_state(zero)
        errors[size, "plain"] = models.largest_error(again["model"], plain.state_dict())
        entries = models.by_entry(again["optimizer"]), models.by_entry(single.state_dict())
        errors[size, "plain states"] = models.largest_error(*entries)
    return errors


def master_weights(stage, optimizer, size, comm):
    """bfloat16 with float32 master weights, against the same by hand in one process: errors of master weights and of
    the model's, and dtypes. Gradients are bfloat16 sums, whose order matters from three ranks on."""
    import torch

    from labs_helpers.data_parallel.zero.state import whole_state

    group = models.group_of(comm, size)
    if group is None:
        return None
    model = models.Net()
    zero = models.make(stage, model, optimizer, models.param_groups(model), group=group, compute_dtype=torch.bfloat16)
    small, wide = models.Net().bfloat16(), models.Net()
    kind, options = models.OPTIMIZERS[optimizer]
    plain = kind(models.param_groups(wide), **options)
    for number in range(3):
        step(zero, model, number, size, comm.rank)
        models.mean_backward(small, models.data(number, size), size)
        for p, w in zip(small.parameters(), wide.parameters(), strict=True):
            w.grad = None if p.grad is None else p.grad.float()
        plain.step()
        with torch.no_grad():
            for p, w in zip(small.parameters(), wide.parameters(), strict=True):
                p.copy_(w)
    state = whole_state(zero)
    expected = dict(wide.named_parameters())
    frozen = {name for name, p in model.named_parameters() if not p.requires_grad}
    named = {name: t for name, t in state["model"].items() if name in expected and name not in frozen}
    batch = models.data(0, 1)[0][0]
    return {
        "master": models.largest_error(named, {n: t.detach() for n, t in expected.items() if n in named}),
        "loss": (models.loss_of(model, batch) - models.loss_of(small, batch)).abs().item(),
        "dtypes": sorted({str(t.dtype) for t in named.values()} | {str(p.dtype) for p in model.parameters()}),
    }


def added_later(stage, comm):
    """A block is trained from the third step on, the frozen weight from the second: errors on four ranks."""
    from labs_helpers.data_parallel.zero.state import whole_state

    ours, plain = models.Net().double(), models.Net().double()
    late = []
    for model in (ours, plain):
        late.append([model.blocks[1].down.weight, *model.spare.parameters()])
        for p in late[-1]:
            p.requires_grad_(False)
    zero = models.make(stage, ours, "AdamW", [p for p in ours.parameters() if p not in set(late[0])])
    kind, options = models.OPTIMIZERS["AdamW"]
    optimizer = kind([p for p in plain.parameters() if p not in set(late[1])], **options)
    for number in range(4):
        for mine, some in ((zero, late[0]), (optimizer, late[1])):
            new = {1: some[:1], 2: some[1:]}.get(number, [])
            for p in new:
                p.requires_grad_(True)
            if new:
                mine.add_param_group({"params": new, "lr": 0.02, "weight_decay": 0.3 * number})
        step(zero, ours, number, 4, comm.rank)
        plain_steps(plain, optimizer, (number,), 4)
    state = whole_state(zero)
    return (
        models.largest_error(state["model"], plain.state_dict()),
        models.largest_error(models.by_entry(state["optimizer"]), models.by_entry(optimizer.state_dict())),
        state["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"],
    )


def peers(comm):
    """Weights after three steps on two ranks, ours against DistributedDataParallel with ZeroRedundancyOptimizer and
    against fully_shard: errors by stage and peer."""
    import torch
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    from labs_helpers.data_parallel.zero.state import whole_state

    group = models.group_of(comm, 2)
    if group is None:
        return None

    def train(model, optimizer, called=None):
        for number in range(3):
            models.loss_of(called or model, models.data(number, 2)[0][comm.rank]).backward()
            optimizer.step()
            optimizer.zero_grad()

    def make():
        model = models.Net()
        for block in (*model.blocks, model.spare):
            block.scale = torch.nn.Parameter(block.scale.detach()[None])  # fully_shard takes no scalars …
        model.nothing = torch.nn.Parameter(torch.zeros(1, 6))  # … and no parameters without elements
        return model

    redundant = make()
    train(
        redundant,
        ZeroRedundancyOptimizer(redundant.parameters(), torch.optim.AdamW, process_group=group, lr=0.01),
        DistributedDataParallel(redundant, process_group=group),
    )
    theirs = {"ZeroRedundancyOptimizer": redundant.state_dict()}
    sharded = make()
    mesh = DeviceMesh.from_group(group, "cpu")
    warnings.filterwarnings("ignore", message=".*returned a view tensor")
    for block in (*sharded.blocks, sharded.spare):
        fully_shard(block, mesh=mesh)
    fully_shard(sharded, mesh=mesh)
    train(sharded, torch.optim.AdamW(sharded.parameters(), lr=0.01))
    whole = {name: getattr(t, "full_tensor", lambda t=t: t)() for name, t in sharded.state_dict().items()}
    theirs["fully_shard"] = whole
    errors = {}
    for stage in ("1", "2", "3"):
        model = make()
        zero = models.make(stage, model, "AdamW", group=group)
        train(model, zero)
        found = whole_state(zero)["model"]
        errors |= {(stage, peer): models.largest_error(found, weights) for peer, weights in theirs.items()}
    return errors
