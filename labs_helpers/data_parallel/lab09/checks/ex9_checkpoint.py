"""Exercise 9 of lab 09: saved on 4, 3 and 2 ranks, loaded on 1 to 5, and trained on."""

from functools import partial

import torch
from torch import Tensor, nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.messages.distributed import GATHERED_SHAPE
from labs_helpers.course.verdict.messages.torch import SIZES_DIFFER
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.checkpoint_expected import SHARED, expect_loaded, expect_state, same
from labs_helpers.data_parallel.lab09.checks.on_ranks import DTYPES, on_ranks, step_once
from labs_helpers.data_parallel.lab09.checks.tensors import numbers

ERRORS = (
    (DTYPES, "parameters and moments are not always float32: what they are gathered into has their dtype"),
    (
        SIZES_DIFFER,
        "a part has shard.numel() elements on every rank, padding included: neither the whole, nor what other numbers "
        "of ranks have",
    ),
    (r"input has shape \(\)|Padding length|chunk expects", "Adam's step is one number: it has no parts"),
    (r"'dict' object has no attribute 'shape'", "optimizer.state has an entry per parameter: optimizer.state[shard]"),
    (r"missing 1 required positional argument: 'state'", "the order is (save, load)"),
    (r"'dict' object is not callable", "the functions are returned, not what they return"),
    (
        r"KeyError: 0",
        "an optimizer without states, as SGD, has no entry in its state_dict; optimizer.state[shard] is {}",
    ),
    (
        r"KeyError: '?(step|exp_avg)",
        "optimizer.state[shard] has no such entry: another optimizer has others, and one without a step has none",
    ),
    (r"KeyError: Parameter", "optimizer.state is a dict by parameter: optimizer.state[shard] = …"),
    (r"KeyError", "the state's names are 'parameters' and 'optimizer', and in it those of optimizer.state[shard]"),
    (
        GATHERED_SHAPE,
        "the whole has as many elements as all shards together, padding too; that is cut off afterwards",
    ),
)
ADAMW = partial(torch.optim.AdamW, lr=0.1, weight_decay=0.01)
MOMENTUM = partial(torch.optim.SGD, lr=0.5, momentum=0.5)
PLAIN = partial(torch.optim.SGD, lr=0.5)


@exercise("09/9", "a checkpoint for any number of ranks", points=10, minutes=20, reference=exercises.checkpoint)
def checkpoint(student):
    step_once()
    for name, numel, make, savers, loaders, groups in (
        ("AdamW", 10, ADAMW, (4,), (3, 2, 1), None),
        ("SGD with momentum", 7, MOMENTUM, (3,), (4, 5), None),
        ("SGD, which has no state", 6, PLAIN, (2,), (4,), None),
        ("AdamW, two groups", 9, ADAMW, (4,), (4,), [[3, 1], [0, 2]]),
    ):
        right, later = _alone(numel, make, 2), _alone(numel, make, 3)
        for ranks in savers:
            size = len(groups[0]) if groups else ranks
            case = f"{name}, saved on {size} ranks"
            run = on_ranks(case, student, _save, [(numel, make, 2)] * ranks, errors=ERRORS, groups=groups)
            saved = run.results[0][0]
            for rank, (state, after) in enumerate(run.results):
                expect_state(case, rank, state, right, size, make)
                if not same(state, after):
                    raise Wrong(case, f"rank {rank}'s saved state changes as training goes on", cause=SHARED)
        for ranks in loaders:
            size = len(groups[0]) if groups else ranks
            case = f"{name}, loaded on {size} rank{'s' * (size > 1)}"
            given = [(numel, make, _copied(saved)) for _ in range(ranks)]
            run = on_ranks(case, student, _load, given, errors=ERRORS, groups=groups)
            for rank, found in enumerate(run.results):
                expect_loaded(case, rank, found, right, later, size)
        sizes = ", ".join(map(str, loaders if not groups else (2,)))
        yield f"{name}: {numel} elements saved on {size if groups else savers[0]} ranks, loaded on {sizes}, trained on"


def _numbers(numel: int, seed: int, make) -> Tensor:
    """In float64 for one of the optimizers: a checkpoint has the dtype that its model has."""
    return numbers(numel, seed).to(torch.float64 if "momentum" in make.keywords else torch.float32)


def _gradient(numel: int, step: int, make) -> Tensor:
    return _numbers(numel, 50 + step, make)


def _alone(numel: int, make, steps: int):
    """The state after so many steps of one process."""
    shard = nn.Parameter(_numbers(numel, 3, make))
    optimizer = make([shard])
    for step in range(steps):
        shard.grad = _gradient(numel, step, make)
        optimizer.step()
    return {"parameters": shard.detach(), "optimizer": dict(optimizer.state[shard])}


def _shard_of(group, whole: Tensor) -> Tensor:
    size = group.size()
    return nn.functional.pad(whole, (0, -len(whole) % size)).chunk(size)[group.rank()].clone()


def _pair(student, shard, optimizer, numel, group):
    answer = student(shard, optimizer, numel, group)
    return expect_tuple("", answer, "save", "load")


def _save(student, group, numel, make, steps):
    shard = nn.Parameter(_shard_of(group, _numbers(numel, 3, make)))
    optimizer = make([shard])
    save, _ = _pair(student, shard, optimizer, numel, group)
    for step in range(steps):
        shard.grad = _shard_of(group, _gradient(numel, step, make))
        optimizer.step()
    state = save()
    copy = _copied(state)
    optimizer.step()
    return copy, state


def _copied(state):
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    return state.detach().clone() if isinstance(state, Tensor) else state


def _load(student, group, numel, make, state):
    """The shard and its state as loaded and after another step, and the given state before and after."""
    shard = nn.Parameter(torch.full_like(_shard_of(group, _numbers(numel, 3, make)), 9.0))
    optimizer = make([shard])
    before = _copied(state)
    _, load = _pair(student, shard, optimizer, numel, group)
    load(state)
    loaded = shard.detach().clone(), _copied(dict(optimizer.state[shard])), _copied(state)
    fresh = bool(state["optimizer"]) and not any(optimizer.state.values())
    warm = _loaded_later(shard, optimizer, load, state) if fresh else None
    shard.grad = _shard_of(group, _gradient(numel, 2, make))
    optimizer.step()
    others = [key for key in optimizer.state if key is not shard]
    return {"rank": group.rank(), "loaded": loaded, "after": shard.detach().clone(), "given": (before, state),
            "others": others, "warm": warm}  # fmt: skip


def _loaded_later(shard, optimizer, load, state):
    """The shard's entries where load() comes once the optimizer has made a step, and so has entries; or None."""
    shard.grad = torch.ones_like(shard)
    optimizer.step()
    try:
        load(_copied(state))
    except Exception:
        return None
    return _copied(dict(optimizer.state[shard]))
