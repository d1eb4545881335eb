"""Expectations on a saved checkpoint, and on the state loaded from it on a different number of ranks."""

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
    "a fresh optimizer has no state, so load() finds no entry of "
    "optimizer.state[shard] to set: take the names from "
    "state['optimizer']"
)
ADVICE = "take 5 elements on 2 ranks, and write down each rank's shard and the padding. Do the same for 3 ranks."

same = Comparison("").same
near = Comparison("", bound=float32_sums).same


def expect_saved(case: str, states: list, right: dict, at: Places) -> None:
    """Raise Wrong unless every rank's state is whole and right."""
    for rank, state in enumerate(states):
        entries = state.get("optimizer") if isinstance(state, dict) and state.keys() == right.keys() else None
        if not isinstance(entries, dict):
            cause = "use the names from the docstring"
            cause = none_returned(states, "a return is missing in save()") if state is None else cause
            raise Wrong(case, f"rank {rank}: save() returned {state!r:.70}; expected {FORM}", cause=cause)
        if entries.keys() != right["optimizer"].keys():
            nested = any(isinstance(value, dict) for value in entries.values())
            cause = "save the entries of optimizer.state[shard] themselves, not a dict of them" if nested else ""
            said = f"'optimizer' has {sorted(map(str, entries))}, expected {sorted(right['optimizer'])}"
            raise Wrong(case, f"rank {rank}: {said}", cause=cause)
    for name, whole in _named(right):
        found = [dict(_named(state))[name] for state in states]
        for rank, one in enumerate(found):
            if not isinstance(one, Tensor):
                cause = ".item() converts a tensor into a number, but load() and the optimizer expect a tensor"
                raise Wrong(case, f"rank {rank}'s {name!r} is {one!r:.40}; expected the tensor itself", cause=cause)
            if whole.ndim and one.dtype != whole.dtype:
                said = f"rank {rank}'s {name!r} is {one.dtype}, expected {whole.dtype}"
                raise Wrong(case, said, cause="it must have the dtype of shard")
        _compared(repr(name)).expect(case, found, [whole] * len(states), partial(_causes, SAVED, whole, at))


def expect_loaded(case: str, results: list[dict], right: dict, later: Tensor, at: Places) -> None:
    """Raise Wrong unless every rank has its part of `right`, and of `later` after another step."""
    for rank, (found, place) in enumerate(zip(results, at.place, strict=True)):
        entries, wanted = found["optimizer"], right["optimizer"]
        if entries.keys() != wanted.keys():
            cause = "" if entries else "load() never changes optimizer.state[shard]"
            parts = {key: cut(value, at.size)[place] if value.ndim else value for key, value in wanted.items()}
            if found["warm"] and near(found["warm"], parts):
                cause = EMPTY
            said = f"rank {rank}: optimizer.state[shard] has {sorted(entries)}, expected {sorted(wanted)}"
            raise Wrong(case, said, cause=cause)
    for name, whole in _named(right):
        found = [dict(_named(one))[name] for one in results]
        wanted = [cut(whole, at.size)[place] if whole.ndim else whole for place in at.place]
        padding = "fill the padding after the last element with 0"
        causes = [(ANEW[0], [torch.zeros(())] * len(found))]
        if whole.ndim:
            causes = *_causes(LOADED, whole, at), (padding, other_padding(found, wanted, len(whole), at))
        comparison = _compared("shard" if name == "parameters" else repr(name))
        comparison.expect(case, found, wanted, partial(tuple, causes))
    for rank, (found, place) in enumerate(zip(results, at.place, strict=True)):
        if not near(found["after"], cut(later, at.size)[place]):
            raise Wrong(case, f"rank {rank}: the step after load() differs from that of a run without a checkpoint")


def _named(state: dict) -> Iterator[tuple[str, Tensor]]:
    yield "parameters", state["parameters"]
    yield from state["optimizer"].items()


def leaves_of(state: object) -> list[tuple[str, Tensor]]:
    """Return the tensors in whatever save() returned, by name."""
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
        return "torch.cat concatenates the parts into one vector"
    return "a single number per tensor is the same on all ranks, and is not a part of anything"


def _causes(mistakes, whole: Tensor, at: Places):
    """Return candidates: the effect of each mistake on every rank."""
    if not whole.ndim:
        return []
    parts = cut(whole, at.size)
    return [(said, [mistake(whole, parts, place) for place in at.place]) for said, mistake in mistakes]


def _own_part(whole, parts, k):
    return torch.cat([part if i == k else torch.zeros_like(part) for i, part in enumerate(parts)])[: len(whole)]


def _rounded_down(whole, parts, k):
    size = len(whole) // len(parts)
    return nn.functional.pad(whole[k * size : (k + 1) * size], (0, len(parts[0]) - size))


SAVED = (  # a function of the whole w, its parts p, and the rank's place k
    ("it contains the padding, which differs on another number of ranks", lambda w, p, k: torch.cat(p)),
    ("this is only this rank's shard: the gather is missing", lambda w, p, k: p[k]),
    ("it contains only this rank's part: the gather is missing", _own_part),
    ("every part is rank 0's", lambda w, p, k: p[0].repeat(len(p))[: len(w)]),
    ("every part is this rank's own part", lambda w, p, k: p[k].repeat(len(p))[: len(w)]),
    ("you cut elements off at the front, but the padding is at the end", lambda w, p, k: torch.cat(p)[-len(w) :]),
)
ANEW = ("starts from zero instead of the saved value", lambda w, p, k: torch.zeros_like(p[k]))
LOADED = (
    ANEW,
    ("every rank loads the whole, but a shard is a part of it", lambda w, p, k: w),
    ("the padding of the last shard is missing", lambda w, p, k: w[k * len(p[k]) :][: len(p[k])]),
    ("nothing is loaded into it", lambda w, p, k: torch.full_like(p[k], 9.0)),
    ("you take every size-th element, but a shard is a contiguous range", lambda w, p, k: torch.cat(p)[k :: len(p)]),
    ("every rank loads the first part", lambda w, p, k: p[0]),
    ("the shard size is rounded down", _rounded_down),
    ("add the padding after the last element, not in front", lambda w, p, k: cut(w, len(p), front=True)[k]),
)
