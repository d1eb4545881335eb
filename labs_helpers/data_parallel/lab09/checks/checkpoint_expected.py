"""What a checkpoint has to hold, and what is loaded from it on another number of ranks."""

from collections.abc import Iterator
from functools import partial

import torch
from torch import Tensor, nn

from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.returned import none_returned
from labs_helpers.course.verdict.trees import Comparison, Difference
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import Places, other_padding
from labs_helpers.data_parallel.lab09.checks.tensors import float32_sums
from labs_helpers.data_parallel.lab09.shards import cut

FORM = '{"parameters": …, "optimizer": {name: value}}'
EMPTY = (
    "the state of a fresh optimizer is empty, so that load() finds no entry of optimizer.state[shard] to set: the "
    "names are those in state['optimizer']"
)
ADVICE = "5 elements on 2 ranks: write down each rank's shard, the padding, and the same for 3 ranks."

same = Comparison("").same
near = Comparison("", bound=float32_sums).same


def expect_saved(case: str, states: list, right: dict, at: Places) -> None:
    """Raise Wrong unless every rank's state is the whole one."""
    for rank, state in enumerate(states):
        entries = state.get("optimizer") if isinstance(state, dict) and state.keys() == right.keys() else None
        if not isinstance(entries, dict):
            cause = "the names are those of the docstring"
            cause = none_returned(states, "a return is missing in save()") if state is None else cause
            raise Wrong(case, f"rank {rank}: save() returned {state!r:.70}; {FORM} is asked for", cause=cause)
        if entries.keys() != right["optimizer"].keys():
            nested = any(isinstance(value, dict) for value in entries.values())
            cause = "the entries of optimizer.state[shard] themselves, not a dict of them" if nested else ""
            said = f"'optimizer' has {sorted(map(str, entries))}, expected {sorted(right['optimizer'])}"
            raise Wrong(case, f"rank {rank}: {said}", cause=cause)
    for name, whole in _named(right):
        found = [dict(_named(state))[name] for state in states]
        for rank, one in enumerate(found):
            if not isinstance(one, Tensor):
                cause = ".item() makes a number of a tensor, which load() and the optimizer do not expect"
                raise Wrong(
                    case, f"rank {rank}'s {name!r} is {one!r:.40}; a tensor is asked for, as it was", cause=cause
                )
            if whole.ndim and one.dtype != whole.dtype:
                said = f"rank {rank}'s {name!r} is {one.dtype}, expected {whole.dtype}"
                raise Wrong(case, said, cause="it has the dtype of shard")
        _compared(repr(name)).expect(case, found, [whole] * len(states), partial(_causes, SAVED, whole, at))


def expect_loaded(case: str, results: list[dict], right: dict, later: Tensor, at: Places) -> None:
    """Raise Wrong unless every rank has its part of `right`, and of `later` after a step."""
    for rank, (found, place) in enumerate(zip(results, at.place, strict=True)):
        entries, wanted = found["optimizer"], right["optimizer"]
        if entries.keys() != wanted.keys():
            cause = "" if entries else "nothing that load() does reaches optimizer.state[shard]"
            parts = {key: cut(value, at.size)[place] if value.ndim else value for key, value in wanted.items()}
            if found["warm"] and near(found["warm"], parts):
                cause = EMPTY
            said = f"rank {rank}: optimizer.state[shard] has {sorted(entries)}, expected {sorted(wanted)}"
            raise Wrong(case, said, cause=cause)
    for name, whole in _named(right):
        found = [dict(_named(one))[name] for one in results]
        wanted = [cut(whole, at.size)[place] if whole.ndim else whole for place in at.place]
        padding = "behind the last element there is padding, and padding is 0"
        causes = [(ANEW[0], [torch.zeros(())] * len(found))]
        if whole.ndim:
            causes = *_causes(LOADED, whole, at), (padding, other_padding(found, wanted, len(whole), at))
        comparison = _compared("shard" if name == "parameters" else repr(name))
        comparison.expect(case, found, wanted, partial(tuple, causes))
    for rank, (found, place) in enumerate(zip(results, at.place, strict=True)):
        if not near(found["after"], cut(later, at.size)[place]):
            raise Wrong(case, f"rank {rank}: the step after load() is not the one of a run that was never saved")


def _named(state: dict) -> Iterator[tuple[str, Tensor]]:
    yield "parameters", state["parameters"]
    yield from state["optimizer"].items()


def leaves_of(state: object) -> list[tuple[str, Tensor]]:
    """The tensors of what save() returned, whatever that is, by name."""
    if not isinstance(state, dict):
        return []
    every = {**state, **(state["optimizer"] if isinstance(state.get("optimizer"), dict) else {})}
    return [(repr(name), x) for name, x in every.items() if isinstance(x, Tensor)]


def _compared(name: str) -> Comparison:
    return Comparison(f"rank {{0}}'s {name}", bound=float32_sums, otherwise=(_of_shape,), advice=ADVICE)


def _of_shape(difference: Difference) -> str:
    path = difference.wrong[0]
    found, right = difference.found[path], difference.right[path]
    if not isinstance(found, Tensor) or found.ndim == right.ndim:
        return ""
    if right.ndim:
        return "torch.cat puts parts one behind the other"
    return "one number per tensor is the same on all ranks, and no part of anything"


def _causes(mistakes, whole: Tensor, at: Places):
    """Candidates: what a mistake makes of the whole, its shards and a rank's place, on every rank."""
    if not whole.ndim:
        return []
    parts = cut(whole, at.size)
    return [(said, [mistake(whole, parts, place) for place in at.place]) for said, mistake in mistakes]


def _own_part(whole, parts, k):
    return torch.cat([part if i == k else torch.zeros_like(part) for i, part in enumerate(parts)])[: len(whole)]


def _rounded_down(whole, parts, k):
    size = len(whole) // len(parts)
    return nn.functional.pad(whole[k * size : (k + 1) * size], (0, len(parts[0]) - size))


SAVED = (  # what a rank has, of the whole w, its parts p and the rank's place k
    ("the padding is in it: another number of ranks pads otherwise", lambda w, p, k: torch.cat(p)),
    ("this rank's shard alone: nothing is gathered", lambda w, p, k: p[k]),
    ("only this rank's part is in it: nothing is gathered", _own_part),
    ("every part is rank 0's", lambda w, p, k: p[0].repeat(len(p))[: len(w)]),
    ("every part is this rank's own", lambda w, p, k: p[k].repeat(len(p))[: len(w)]),
    ("the last elements are cut off in front: padding stands behind", lambda w, p, k: torch.cat(p)[-len(w) :]),
)
ANEW = ("begun anew, not loaded", lambda w, p, k: torch.zeros_like(p[k]))
LOADED = (
    ANEW,
    ("the whole is loaded on every rank: a shard is a part of it", lambda w, p, k: w),
    ("the last shard's padding is missing", lambda w, p, k: w[k * len(p[k]) :][: len(p[k])]),
    ("nothing is loaded into it", lambda w, p, k: torch.full_like(p[k], 9.0)),
    ("every size-th element; a shard is a run of neighbours", lambda w, p, k: torch.cat(p)[k :: len(p)]),
    ("every rank loads the first part", lambda w, p, k: p[0]),
    ("shards are cut in the size that rounds down", _rounded_down),
    ("padding stands behind the last element, and not in front", lambda w, p, k: cut(w, len(p), front=True)[k]),
)
