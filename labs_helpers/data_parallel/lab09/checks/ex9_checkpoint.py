"""Exercise 9 of lab 09: save on 4, 3, and 2 ranks, load on 1 to 5, and continue training."""

from functools import partial

import torch
from torch import Tensor, nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.messages.distributed import GATHERED_SHAPE
from labs_helpers.course.verdict.messages.torch import SIZES_DIFFER
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.checkpoint_expected import expect_loaded, expect_saved, leaves_of, same
from labs_helpers.data_parallel.lab09.checks.kept import LeftAlone
from labs_helpers.data_parallel.lab09.checks.on_ranks import DTYPES, on_ranks
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import places
from labs_helpers.data_parallel.lab09.checks.tensors import numbers
from labs_helpers.data_parallel.lab09.flat import held
from labs_helpers.data_parallel.lab09.shards import shard_of, step_once, train_on

PART = (
    "a part has shard.numel() elements on every rank, including padding: "
    "not the size of the whole, and not the part for another number of ranks"
)
ERRORS = (
    (DTYPES, "parameters and moments are not always float32: gather each into a tensor of its own dtype"),
    (SIZES_DIFFER, PART),
    (r"input has shape \(\)|Padding length|chunk expects", "Adam's step is a single number and has no parts"),
    (r"'dict' object has no attribute 'shape'", "optimizer.state has one entry per parameter: optimizer.state[shard]"),
    (r"missing 1 required positional argument: 'state'", "return (save, load) in this order"),
    (r"'dict' object is not callable", "return the functions themselves, not their results"),
    (r"KeyError: 0", "SGD keeps no state, so its state_dict has no entry, whereas optimizer.state[shard] is {}"),
    (r"KeyError: '?(step|exp_avg)", "optimizer.state[shard] has different entries, or none before the first step"),
    (r"KeyError: Parameter", "optimizer.state is a dict keyed by parameter: optimizer.state[shard] = …"),
    (
        r"KeyError",
        "the keys of the state are 'parameters' and 'optimizer', and the "
        "keys inside are those of optimizer.state[shard]",
    ),
    (
        GATHERED_SHAPE,
        "the gathered tensor is as long as all shards together, including padding: cut the padding off afterwards",
    ),
)
GIVEN = "save() and load() run between steps, and training continues with the same shard and state"
WHOLE = "chunk() and slices return views, which keep the whole tensor alive; clone() copies the part"
SHARED = "clone() first, because the optimizer changes its tensors in place"
LOOKED_UP = "the optimizer looks up optimizer.state by shard itself, not by a number or a name"
ADAMW = partial(torch.optim.AdamW, lr=0.1, weight_decay=0.01)
MOMENTUM = partial(torch.optim.SGD, lr=0.5, momentum=0.5)
PLAIN = partial(torch.optim.SGD, lr=0.5)
TABLE = (  # name, elements, dtype, optimizer, ranks that save, ranks that load, groups
    ("AdamW", 10, torch.float32, ADAMW, 4, (3, 2, 1), None),
    ("SGD with momentum", 7, torch.float64, MOMENTUM, 3, (4, 5), None),  # a checkpoint has the dtype of its model
    ("SGD, which keeps no state", 6, torch.float32, PLAIN, 2, (4,), None),
    ("AdamW, one element per rank", 3, torch.float32, ADAMW, 3, (2,), None),
    ("AdamW on one rank", 5, torch.float32, ADAMW, 1, (2,), None),
    ("AdamW, two groups", 9, torch.float32, ADAMW, 4, (4,), [[3, 1], [0, 2]]),
)


@exercise("09/9", "a checkpoint for any number of ranks", points=10, minutes=20, reference=exercises.checkpoint)
def checkpoint(student):
    step_once()
    for name, numel, dtype, make, savers, loaders, groups in TABLE:
        start, *gradients = (numbers(numel, seed).to(dtype) for seed in (3, 50, 51, 52))
        alone = nn.Parameter(start.clone())
        optimizer = train_on(alone, make([alone]), gradients[:2])
        right = _copied({"parameters": alone, "optimizer": dict(optimizer.state[alone])})
        train_on(alone, optimizer, gradients[2:])
        at = places(savers, groups)
        case = f"{name}, saved on {at.size} rank{'s' * (at.size > 1)}"
        run = on_ranks(case, student, _save, [(start, gradients, make)] * savers, errors=ERRORS, groups=groups)
        expect_saved(case, run.results, right, at)
        saved, sizes = run.results[0], []
        for ranks in loaders:
            to = places(ranks, groups)
            sizes.append(str(to.size))
            case = f"{name}, loaded on {to.size} rank{'s' * (to.size > 1)}"
            run = on_ranks(case, student, _load, [(saved, gradients, make)] * ranks, errors=ERRORS, groups=groups)
            expect_loaded(case, run.results, right, alone.detach(), to)
        yield f"{name}: {numel} elements saved on {at.size}, loaded on {', '.join(sizes)}, training continued"


def _made(student, group, numel, shard, make):
    """Return (a shard, its optimizer, the two functions of the answer)."""
    shard = nn.Parameter(shard)
    optimizer = make([shard])
    return shard, optimizer, *expect_tuple("", student(shard, optimizer, numel, group), "save", "load")


def _save(student, group, start, gradients, make):
    """Return the saved state, after checking that another step does not change it."""
    mine, *own = (shard_of(group, one) for one in (start, *gradients))
    shard, optimizer, save, _ = _made(student, group, len(start), mine, make)
    train_on(shard, optimizer, own[:2])
    left_alone = LeftAlone(lambda: {"shard": shard, **optimizer.state[shard]})
    state = save()
    left_alone.expect(GIVEN)
    copy = _copied(state)
    if hanging := [name for name, x in leaves_of(state) if x.requires_grad]:
        raise Wrong(
            "",
            f"saves {hanging[0]} with an autograd graph, or as a parameter",
            cause="call .detach() before gathering it",
        )
    train_on(shard, optimizer, own[:1])
    if not same(copy, state):
        raise Wrong("", "returns a state that changes when training continues", cause=SHARED)
    return copy


def _copied(state):
    if isinstance(state, dict):
        return {key: _copied(value) for key, value in state.items()}
    return state.detach().clone() if isinstance(state, Tensor) else state


def _load(student, group, state, gradients, make):
    """Return the shard and its state as loaded, the shard after another step, and the state in a later load()."""
    own, before = shard_of(group, gradients[2]), _copied(state)
    shard, optimizer, _, load = _made(student, group, len(gradients[2]), torch.full_like(own, 9.0), make)
    load(state)
    if any(key is not shard for key in optimizer.state):
        raise Wrong("", "has an entry in optimizer.state for something other than shard", cause=LOOKED_UP)
    if not same(before, state):
        raise Wrong("", "changes the state passed to load()")
    own_memory = [shard, *(x for x in optimizer.state[shard].values() if isinstance(x, Tensor))]
    if held(own_memory) > sum(x.nbytes for x in own_memory):
        raise Wrong(
            "", f"keeps {held(own_memory)} bytes alive after load(), although its part has {shard.nbytes}", cause=WHOLE
        )
    found, warm = _copied({"parameters": shard, "optimizer": dict(optimizer.state[shard])}), None
    if state["optimizer"] and not any(optimizer.state.values()):
        warm = _loaded_later(shard, optimizer, load, state)
    train_on(shard, optimizer, [own])
    if not same(before, state):
        raise Wrong("", "changes the state passed to load() when training continues", cause=SHARED)
    return {**found, "after": shard.detach(), "warm": warm}


def _loaded_later(shard, optimizer, load, state):
    """Return the shard's entries if load() runs after an optimizer step, which creates entries; otherwise None."""
    train_on(shard, optimizer, [torch.ones_like(shard)])
    try:
        load(_copied(state))
    except Exception:
        return None
    return _copied(dict(optimizer.state[shard]))
