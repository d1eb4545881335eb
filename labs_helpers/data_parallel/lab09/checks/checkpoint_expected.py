"""What a checkpoint has to hold, and what is loaded from it on another number of ranks."""

import torch
from torch import Tensor

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import cut
from labs_helpers.data_parallel.lab09.checks.tensors import float32_sums

FORM = '{"parameters": …, "optimizer": {name: value}}'
SHARED = "clone() first: the optimizer changes its tensors in place"
EMPTY = (
    "the state of a fresh optimizer is empty, so that load() finds no entry of optimizer.state[shard] to set: the "
    "names are those in state['optimizer']"
)
ADVICE = "5 elements on 2 ranks: write down each rank's shard, the padding, and the same for 3 ranks."


same = Comparison("").same
near = Comparison("", bound=float32_sums).same


def expect_state(case: str, rank: int, state, right, size: int, make) -> None:
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
    expect_value(case, f"rank {rank}'s 'parameters'", state["parameters"], right["parameters"], size, rank)
    for key, value in right["optimizer"].items():
        expect_value(case, f"rank {rank}'s {key!r}", state["optimizer"][key], value, size, rank)


def expect_value(case: str, name: str, found, right: Tensor, size: int, rank: int) -> None:
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
    if not right.ndim:
        causes = []
    else:
        parts, n = cut(right.flatten(), size), right.numel()
        mine = parts[rank % size]
        alone = torch.cat([mine if i == rank % size else torch.zeros_like(mine) for i in range(size)])
        causes = [
            ("the shards are in the reverse order of the ranks", torch.cat(parts[::-1])[:n]),
            ("only this rank's part is in it: nothing is gathered", alone[:n]),
            ("every part is rank 0's", torch.cat([parts[0]] * size)[:n]),
            ("every part is this rank's own", torch.cat([mine] * size)[:n]),
            ("the last elements are cut off in front: padding stands behind", torch.cat(parts)[-n:]),
        ]
    Comparison(name, bound=float32_sums, advice=ADVICE).expect(case, found, right, lambda: causes)


def expect_loaded(case: str, rank: int, found, right, later, size: int) -> None:
    place = found["rank"]

    def part(whole):
        return cut(whole, size)[place]

    shard, entries, given = found["loaded"]
    expect_part(case, f"rank {rank}'s shard", shard, right["parameters"], size, place)
    if entries.keys() != right["optimizer"].keys():
        cause = "" if entries else "nothing that load() does reaches optimizer.state[shard]"
        if found["others"]:
            cause = "optimizer.state is looked up by shard itself, not by a number or a name"
        elif found["warm"] and same_entries(found["warm"], right["optimizer"], part):
            cause = EMPTY
        names = sorted(right["optimizer"])
        raise Wrong(case, f"rank {rank}: optimizer.state[shard] has {sorted(entries)}, expected {names}", cause=cause)
    for key, value in right["optimizer"].items():
        if value.ndim:
            expect_part(case, f"rank {rank}'s {key!r}", entries[key], value, size, place)
        elif float(entries[key]) != float(value):
            cause = "begun anew, not loaded" if not float(entries[key]) else ""
            raise Wrong(case, f"rank {rank}'s {key!r} is {float(entries[key])}, expected {float(value)}", cause=cause)
    if found["others"]:
        cause = "optimizer.state is looked up by shard itself"
        raise Wrong(case, f"rank {rank}: optimizer.state has an entry for something else than shard", cause=cause)
    if not same(found["given"][0], given):
        raise Wrong(case, f"rank {rank}: load() changes the state that it is given")
    if not near(found["after"], part(later["parameters"])):
        raise Wrong(case, f"rank {rank}: the step after load() is not the one of a run that was never saved")
    if not same(*found["given"]):
        raise Wrong(case, f"rank {rank}: training changes the state that load() was given", cause=SHARED)


def same_entries(found, right, part) -> bool:
    wanted = {key: part(value) if value.ndim else value for key, value in right.items()}
    return near(found, wanted)


def expect_part(case: str, name: str, found, whole: Tensor, size: int, place: int) -> None:
    parts = cut(whole, size)
    right, n = parts[place], len(parts[0])
    if not isinstance(found, Tensor) or found.shape != right.shape:
        shape = tuple(found.shape) if isinstance(found, Tensor) else f"{found!r:.40}"
        cause = {whole.numel(): "the whole is loaded on every rank: a shard is a part of it",
                 whole[place * n : (place + 1) * n].numel(): "the last shard's padding is missing"}  # fmt: skip
        known = cause.get(found.numel(), "") if isinstance(found, Tensor) else ""
        raise Wrong(case, f"{name} has shape {shape}, expected {tuple(right.shape)}", cause=known)
    small = len(whole) // size
    short = torch.zeros_like(right)
    short[:small] = whole[place * small : (place + 1) * small]
    causes = [
        ("nothing is loaded into it", torch.full_like(right, 9.0)),
        ("it is added to what was there", right + 9.0),
        ("begun anew, not loaded", torch.zeros_like(right)),
        ("every size-th element; a shard is a run of neighbours", torch.cat(parts)[place::size]),
        ("every rank loads the first part", parts[0]),
        ("the parts are those of 4 ranks", cut(whole, 4)[min(place, 3)]),
        ("the order of the ranks is reversed", parts[size - 1 - place]),
        ("shards are cut in the size that rounds down", short),
        ("padding stands behind the last element, and not in front", cut(whole, size, front=True)[place]),
    ]
    mine = near(found[: len(whole) - place * n], right[: len(whole) - place * n]) if place * n < len(whole) else True
    padding = "behind the last element there is padding, and padding is 0" if mine else ""
    Comparison(name, bound=float32_sums, otherwise=(lambda _: padding,), advice=ADVICE).expect(
        case, found, right, lambda: causes
    )
