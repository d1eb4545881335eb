"""Exercise 9 of lab 09: saved on 4, 3 and 2 ranks, loaded on 1 to 5, and trained on."""

from functools import partial

import torch
from torch import Tensor, nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple, likely
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.ranks import DTYPES, on_ranks
from labs_helpers.data_parallel.lab09.checks.tensors import near, numbers

FORM = '{"parameters": …, "optimizer": {name: value}}'
ERRORS = (
    (DTYPES, "parameters and moments are not always float32: what they are gathered into has their dtype"),
    (
        r"The size of tensor a|shape mismatch|must match the size|expand\(",
        "a part has shard.numel() elements on every rank, padding included: neither the whole, nor what other numbers "
        "of ranks have",
    ),
    (r"input has shape \(\)|all_gather.*0-d", "Adam's step is one number, and no part of anything"),
    (r"Padding length|1D tensors|chunk expects", "Adam's step is one number: it has no parts"),
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
    (r"'(float|int)' object has no attribute", "an entry of the state may be a number"),
    (
        r"all_gather_into_tensor: output",
        "the whole has as many elements as all shards together, padding too; that is cut off afterwards",
    ),
)
ADAMW = partial(torch.optim.AdamW, lr=0.1, weight_decay=0.01)
MOMENTUM = partial(torch.optim.SGD, lr=0.5, momentum=0.5)
PLAIN = partial(torch.optim.SGD, lr=0.5)
SHARED = "clone() first: the optimizer changes its tensors in place"
EMPTY = (
    "the state of a fresh optimizer is empty, so that load() finds no entry of optimizer.state[shard] to set: the "
    "names are those in state['optimizer']"
)
ADVICE = "5 elements on 2 ranks: write down each rank's shard, the padding, and the same for 3 ranks."


@exercise("09/9", "a checkpoint for any number of ranks", points=10, minutes=20, reference=exercises.checkpoint)
def checkpoint(student):
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
                _expect_state(case, rank, state, right, size, make)
                if not _same(state, after):
                    raise Wrong(case, f"rank {rank}'s saved state changes as training goes on", cause=SHARED)
        for ranks in loaders:
            size = len(groups[0]) if groups else ranks
            case = f"{name}, loaded on {size} rank{'s' * (size > 1)}"
            given = [(numel, make, _copied(saved)) for _ in range(ranks)]
            run = on_ranks(case, student, _load, given, errors=ERRORS, groups=groups)
            for rank, found in enumerate(run.results):
                _expect_loaded(case, rank, found, right, later, size)
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


def _same(one, other) -> bool:
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and one.shape == other.shape and torch.equal(one.detach(), other.detach())
    return one == other


def _expect_state(case: str, rank: int, state, right, size: int, make) -> None:
    if not isinstance(state, dict) or state.keys() != right.keys() or not isinstance(state["optimizer"], dict):
        cause = "a return is missing in save()" if state is None else ""
        if isinstance(state, dict) and state.keys() != right.keys():
            cause = "the names are those of the docstring"
        raise Wrong(case, f"rank {rank}: save() returned {state!r:.70}; {FORM} is asked for", cause=cause)
    if state["optimizer"].keys() != right["optimizer"].keys():
        found, wanted = (sorted(map(str, one["optimizer"])) for one in (state, right))
        nested = any(isinstance(value, dict) for value in state["optimizer"].values())
        cause = "the entries of optimizer.state[shard] themselves, not a dict of them" if nested else ""
        raise Wrong(case, f"rank {rank}: 'optimizer' has {found}, expected {wanted}", cause=cause)
    _expect_value(case, f"rank {rank}'s 'parameters'", state["parameters"], right["parameters"], size, rank)
    for key, value in right["optimizer"].items():
        _expect_value(case, f"rank {rank}'s {key!r}", state["optimizer"][key], value, size, rank)


def _expect_value(case: str, name: str, found, right: Tensor, size: int, rank: int) -> None:
    if not isinstance(found, Tensor):
        if right.ndim == 0 and isinstance(found, int | float) and found == right:
            return
        raise Wrong(case, f"{name} is {found!r:.60}; a tensor is asked for")
    if right.ndim and found.dtype != right.dtype:
        raise Wrong(case, f"{name} is {found.dtype}, expected {right.dtype}", cause="it has the dtype of shard")
    if found.shape != right.shape:
        padded = -(-right.numel() // size) * size
        causes = {
            padded: "the padding is in it: another number of ranks pads otherwise",
            padded // size: "this rank's shard alone: nothing is gathered",
        }
        cause = "one number per tensor is the same on all ranks, and no part of anything" if right.ndim == 0 else ""
        cause = cause or (
            causes.get(found.numel(), "") if found.ndim == 1 else "torch.cat puts parts one behind the other"
        )
        raise Wrong(case, f"{name} has shape {tuple(found.shape)}, expected {tuple(right.shape)}", cause=cause)
    if not near(found, right):
        at = int((found.double() - right.double()).abs().nan_to_num(9e9).flatten().argmax())
        parts = nn.functional.pad(right.flatten(), (0, -right.numel() % size)).chunk(size)
        n = right.numel()
        candidates = [
            ("the shards are in the reverse order of the ranks", torch.cat(parts[::-1])[:n]),
            (
                "only this rank's part is in it: nothing is gathered",
                torch.cat([part if i == rank % size else torch.zeros_like(part) for i, part in enumerate(parts)])[:n],
            ),
            ("every part is rank 0's", torch.cat([parts[0]] * size)[:n]),
            ("every part is this rank's own", torch.cat([parts[rank % size]] * size)[:n]),
            (
                "the last elements are cut off in front: padding stands behind",
                torch.cat(parts)[len(torch.cat(parts)) - n :],
            ),
        ]
        cause = likely(candidates, lambda one: near(found.flatten(), one)) if right.ndim else ()
        found_at, right_at = found.flatten()[at], right.flatten()[at]
        raise Wrong(
            case, f"{name}, element {at}, is {found_at:.5g}, expected {right_at:.5g}", cause=cause, advice=ADVICE
        )


def _expect_loaded(case: str, rank: int, found, right, later, size: int) -> None:
    place = found["rank"]

    def part(whole):
        return nn.functional.pad(whole, (0, -len(whole) % size)).chunk(size)[place]

    shard, entries, given = found["loaded"]
    _expect_part(case, f"rank {rank}'s shard", shard, right["parameters"], size, place)
    if entries.keys() != right["optimizer"].keys():
        cause = "" if entries else "nothing that load() does reaches optimizer.state[shard]"
        if found["others"]:
            cause = "optimizer.state is looked up by shard itself, not by a number or a name"
        elif found["warm"] and _same_entries(found["warm"], right["optimizer"], part):
            cause = EMPTY
        names = sorted(right["optimizer"])
        raise Wrong(case, f"rank {rank}: optimizer.state[shard] has {sorted(entries)}, expected {names}", cause=cause)
    for key, value in right["optimizer"].items():
        if value.ndim:
            _expect_part(case, f"rank {rank}'s {key!r}", entries[key], value, size, place)
        elif float(entries[key]) != float(value):
            cause = "begun anew, not loaded" if not float(entries[key]) else ""
            raise Wrong(case, f"rank {rank}'s {key!r} is {float(entries[key])}, expected {float(value)}", cause=cause)
    if found["others"]:
        cause = "optimizer.state is looked up by shard itself"
        raise Wrong(case, f"rank {rank}: optimizer.state has an entry for something else than shard", cause=cause)
    if not _same(found["given"][0], given):
        raise Wrong(case, f"rank {rank}: load() changes the state that it is given")
    if not near(found["after"], part(later["parameters"])):
        raise Wrong(case, f"rank {rank}: the step after load() is not the one of a run that was never saved")
    if not _same(*found["given"]):
        raise Wrong(case, f"rank {rank}: training changes the state that load() was given", cause=SHARED)


def _same_entries(found, right, part) -> bool:
    wanted = {key: part(value) if value.ndim else value for key, value in right.items()}
    return found.keys() == wanted.keys() and all(
        torch.is_tensor(one) and one.shape == wanted[key].shape and near(one, wanted[key]) for key, one in found.items()
    )


def _expect_part(case: str, name: str, found, whole: Tensor, size: int, place: int) -> None:
    padded = nn.functional.pad(whole, (0, -len(whole) % size))
    right, n = padded.chunk(size)[place], len(padded) // size
    if not isinstance(found, Tensor) or found.shape != right.shape:
        shape = tuple(found.shape) if isinstance(found, Tensor) else f"{found!r:.40}"
        cause = {whole.numel(): "the whole is loaded on every rank: a shard is a part of it",
                 whole[place * n : (place + 1) * n].numel(): "the last shard's padding is missing"}  # fmt: skip
        known = cause.get(found.numel(), "") if isinstance(found, Tensor) else ""
        raise Wrong(case, f"{name} has shape {shape}, expected {tuple(right.shape)}", cause=known)
    if near(found, right):
        return
    small, fours = len(whole) // size, nn.functional.pad(whole, (0, -len(whole) % 4)).chunk(4)
    short = whole[place * small : (place + 1) * small]
    candidates = [
        ("nothing is loaded into it", torch.full_like(right, 9.0)),
        ("it is added to what was there", right + 9.0),
        ("begun anew, not loaded", torch.zeros_like(right)),
        ("every size-th element; a shard is a run of neighbours", padded[place::size]),
        ("every rank loads the first part", padded.chunk(size)[0]),
        ("the parts are those of 4 ranks", fours[min(place, 3)]),
        ("the order of the ranks is reversed", padded.chunk(size)[size - 1 - place]),
        ("shards are cut in the size that rounds down", nn.functional.pad(short, (0, n - len(short)))),
        ("padding stands behind the last element, and not in front", nn.functional.pad(
            whole, (len(padded) - len(whole), 0)).chunk(size)[place]),
    ]  # fmt: skip
    at = int((found.double() - right.double()).abs().nan_to_num(9e9).argmax())
    cause = likely(candidates, lambda one: near(found, one))
    if not cause and place * n + at >= len(whole):
        cause = "behind the last element there is padding, and padding is 0"
    raise Wrong(case, f"{name}, element {at}, is {found[at]:.5g}, expected {right[at]:.5g}", cause=cause, advice=ADVICE)
