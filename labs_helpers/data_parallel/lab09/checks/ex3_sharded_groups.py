"""Exercise 3 of lab 09: the shard's own memory, in the right places, and each piece in its parameter's group."""

from copy import deepcopy

import torch
from torch import Tensor

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, expect_tuple, likely
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.piece_mistakes import pieces_of

DECAY = [{"params": [0, 2], "weight_decay": 0.1, "lr": 0.5}, {"params": [3, 1], "weight_decay": 0.0}]
THREE = [{"params": [1, 4]}, {"params": [5, 0, 2], "betas": (0.8, 0.9)}, {"params": [3], "lr": 0.1}]
ALIKE = [{"params": [0, 2], "weight_decay": 0.1}, {"params": [1], "weight_decay": 0.1}, {"params": [3]}]
ONE = [{"params": [0, 1, 2, 3]}]
ADVICE = "write down numels (5, 3) on 2 ranks: rank 1's shard, its pieces, where each begins in the shard."


@exercise("09/3", "what the optimizer is given", points=10, minutes=15, reference=exercises.sharded_groups)
def sharded_groups(student):
    for title, numels, ranks, groups in (
        ("decay for every other parameter", (5, 6, 4, 2), 2, DECAY),
        ("parameters cut across shards, and padding", (7, 2, 9, 5), 3, DECAY),
        ("three groups, some empty here", (4, 1, 6, 3, 2, 8), 4, THREE),
        ("two groups with the same options", (3, 6, 4, 2), 2, ALIKE),
        ("one group, on one rank", (4, 3, 2, 1), 1, ONE),
    ):
        held = 0
        for rank in reversed(range(ranks)):  # behind the first a parameter may be cut
            held += _try(student, f"{title}, rank {rank} of {ranks}", numels, ranks, rank, groups)
        yield f"{title}: {held} tensors on the shards' own memory of {ranks} rank{'s' * (ranks > 1)}"


def _try(student, case: str, numels, ranks: int, rank: int, groups) -> int:
    size, pieces = pieces_of(numels, ranks, rank)
    shard, given, own = torch.arange(1.0, size + 1), deepcopy(groups), list(pieces)
    try:
        answer = student(shard, own, given)
    except Exception as error:
        wrong = describe_error(student, error, case)
        cause = wrong.causes
        if isinstance(error, IndexError):
            cause = "a parameter's number is no index of tensors: parameters without a piece here have none"
        elif isinstance(error, KeyError):
            cause = "a parameter without a piece here is left out of its group"
        raise Wrong(case, wrong.found, cause=cause) from None
    if answer is None:
        raise Wrong(case, "returned None; (tensors, param_groups) is asked for", cause="a return is missing")
    tensors, param_groups = expect_tuple(case, answer, "tensors", "param_groups")
    if own != pieces:
        raise Wrong(case, "the list pieces that you were given has changed", cause="go through it, or work on a copy")
    _expect_tensors(case, tensors, shard, pieces)
    if given != groups or any("params" in one and _has_tensors(one) for one in given):
        cause = "a group is a dict; {**group, …} makes a new one, and copy() too"
        raise Wrong(case, "the groups that you were given have changed", cause=cause)
    _expect_groups(case, tensors, param_groups, pieces, groups, given)
    return len(tensors)


def _has_tensors(group: dict) -> bool:
    return any(isinstance(one, Tensor) for one in group["params"])


def _expect_tensors(case: str, tensors, shard: Tensor, pieces) -> None:
    if isinstance(tensors, list | tuple) and tensors and all(isinstance(one, dict) for one in tensors):
        raise Wrong(case, "tensors is a list of dicts", cause="the order is (tensors, param_groups)")
    if not isinstance(tensors, list | tuple) or not all(isinstance(one, Tensor) for one in tensors):
        raise Wrong(case, f"tensors is {tensors!r:.70}; a list of nn.Parameters is asked for")
    sizes, right = [one.numel() for one in tensors], [end - begin for _, begin, end in pieces]
    if sizes != right:
        cause = "a tensor for each piece: what several pieces of one shard have is not put together"
        found = f"tensors have {sizes} elements, expected {right}"
        if len(sizes) == len(right):
            cause = likely(_slices(pieces, shard), lambda other: [n for _, n in other] == sizes)
        raise Wrong(case, found, cause=cause)
    starts = [sum(right[:i]) for i in range(len(right))]
    for i, (one, start) in enumerate(zip(tensors, starts, strict=True)):
        place = f"tensor {i}, of parameter {pieces[i][0]},"
        if one.untyped_storage().data_ptr() != shard.untyped_storage().data_ptr():
            cause = (
                "clone(), torch.tensor, +, cat and indexing with lists copy; a slice, and nn.Parameter of it, do not"
            )
            raise Wrong(case, f"{place} has memory of its own; an update of it does not reach the shard", cause=cause)
        if not one.is_leaf:
            cause = "a slice of an nn.Parameter is the result of an operation; nn.Parameter(…) of the slice is a leaf"
            raise Wrong(case, f"{place} is no leaf: torch.optim does not take it", cause=cause)
        if one.storage_offset() != start:
            found = [one.storage_offset() for one in tensors]
            cause = likely(([s, [at for at, _ in other]] for s, other in _slices(pieces, shard)), found.__eq__)
            raise Wrong(
                case, f"{place} begins at {found[i]} in the shard, expected {start}", cause=cause, advice=ADVICE
            )
    for one in tensors:
        if not isinstance(one, torch.nn.Parameter):
            raise Wrong(case, "tensors are plain tensors; nn.Parameters are asked for", cause="nn.Parameter(slice)")
        if one.ndim != 1:
            raise Wrong(
                case, f"a tensor has shape {tuple(one.shape)}; pieces are vectors", cause="a slice of the shard"
            )


SLICES = (  # (at, begin, end) → where a piece's slice of the shard begins and ends, and where the next one begins
    (
        "begin is a place in the parameter; in the shard a piece begins behind the one before",
        lambda at, begin, end: (begin, end, at),
    ),
    ("all pieces begin at 0: the place in the shard is not moved on", lambda at, b, e: (at, at + e - b, at)),
    ("the place is moved on by end − begin, not by end", lambda at, b, e: (at, at + e - b, at + e)),
    ("the place is moved on by end − begin, not by begin", lambda at, b, e: (at, at + e - b, at + b)),
    ("the place is moved on by end − begin, not to end", lambda at, b, e: (at, at + e - b, e)),
    ("the place is moved on by one too many", lambda at, b, e: (at, at + e - b, at + e - b + 1)),
    ("begin and end are exact: the piece has end − begin elements", lambda at, b, e: (at, at + e - b - 1, at + e - b)),
    ("end is no number of elements: the piece has end − begin", lambda at, b, e: (at, at + e, at + e - b)),
    ("a slice ends at its begin plus its length: at + end − begin", lambda at, b, e: (at, e - b, at + e - b)),
    ("end is an element of the parameter, not of the shard: at + end − begin", lambda at, b, e: (at, e, at + e - b)),
    ("the place is moved on before the slice is taken", lambda at, b, e: (at + e - b, at + 2 * (e - b), at + e - b)),
)


def _slices(pieces, shard: Tensor):
    """Candidates: (place, elements) of each tensor."""
    for said, cut in SLICES:
        at, found = 0, []
        for _, begin, end in pieces:
            first, last, at = cut(at, begin, end)
            found.append((first, len(shard[first:last])))
        yield said, found


def _expect_groups(case: str, tensors, found, pieces, groups, given) -> None:
    if not isinstance(found, list | tuple) or not all(isinstance(one, dict) and "params" in one for one in found):
        raise Wrong(case, f"param_groups is {found!r:.70}; a list of dicts with 'params' is asked for")
    numbers = [number for number, _, _ in pieces]
    right = [[numbers.index(number) for number in group["params"] if number in numbers] for group in groups]
    if len(found) != len(groups):
        kept = [one for one in right if one]
        cause = "a group of which nothing lies here stays, empty: a schedule of learning rates goes by position"
        cause = cause if len(found) == len(kept) else ""
        options = {str({key: value for key, value in group.items() if key != "params"}) for group in groups}
        if not cause and len(found) == len(options):
            cause = "groups with the same options stay two: a schedule of learning rates goes by position"
        if not cause and len(found) == 1:
            cause = "the first group alone: a return or a break inside the loop ends it"
        said = f"param_groups has {len(found)} groups, expected {len(groups)}"
        raise Wrong(case, said, cause=cause)
    place = {id(one): i for i, one in enumerate(tensors)}
    members = [list(one["params"]) for one in found]
    if any(not isinstance(p, Tensor) for one in members for p in one):
        missing = any(p is None for one in members for p in one)
        cause = "a parameter without a piece here is left out of its group" if missing else "numbers are left in place"
        raise Wrong(case, f"params are {members!r:.70}; the tensors are asked for", cause=cause)
    if any(id(p) not in place for one in members for p in one):
        cause = "made a second time, they get no gradient: the same objects belong in both"
        raise Wrong(case, "param_groups has tensors that are not in tensors", cause=cause)
    seen = [[place[id(p)] for p in one] for one in members]
    if [sorted(one) for one in seen] != [sorted(one) for one in right]:
        i = next(i for i, one in enumerate(right) if seen[i] != one)
        said = f"group {i} has the tensors {seen[i]} of {len(tensors)}, expected {right[i]}"
        raise Wrong(
            case,
            said,
            cause=likely(
                _memberships(numbers, groups), lambda other: [set(o) for o in other] == [set(o) for o in seen]
            ),
            advice=ADVICE,
        )
    for i, (one, group, old) in enumerate(zip(found, groups, given, strict=True)):
        options = [{key: value for key, value in each.items() if key != "params"} for each in (one, group)]
        if options[0] != options[1]:
            cause = "the options of a group are kept: {**group, 'params': …}" if not options[0] else ""
            if any(options[0] == {k: v for k, v in other.items() if k != "params"} for other in groups):
                cause = "these are the options of another group"
            raise Wrong(case, f"group {i} has the options {options[0]}, expected {options[1]}", cause=cause)
        if one is old:
            raise Wrong(case, f"group {i} is the dict that you were given", cause="a new dict is asked for")


def _memberships(numbers: list[int], groups):
    wanted = [group["params"] for group in groups]
    mine = [[number for number in one if number in numbers] for one in wanted]
    everything = list(range(len(numbers)))
    yield (
        "a parameter's number is no index of tensors",
        [[n - 1 for n in one if 1 <= n <= len(numbers)] for one in wanted],
    )
    yield "every group has all tensors", [everything] * len(groups)
    yield "a parameter's number is no index of tensors", [[n for n in one if n < len(numbers)] for one in wanted]
    yield (
        "the groups are exchanged: options go with the parameters they came with",
        [[numbers.index(n) for n in one] for one in mine[::-1]],
    )
    yield "all tensors are in the first group", [everything] + [[] for _ in groups[1:]]
    yield "all tensors are in the last group", [[] for _ in groups[1:]] + [everything]
    yield (
        "a place in a group's list is no index of tensors",
        [[i for i, n in enumerate(one) if n in numbers and i < len(numbers)] for one in wanted],
    )
    yield "every parameter has the first tensor", [[0] * len(one) for one in mine]
    counts = [len(one) for one in mine]
    yield (
        "tensors are dealt out in order; which group one is in goes by its parameter's number",
        [everything[sum(counts[:i]) : sum(counts[: i + 1])] for i in range(len(groups))],
    )
