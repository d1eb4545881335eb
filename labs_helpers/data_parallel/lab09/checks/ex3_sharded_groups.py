"""Exercise 3 of lab 09: tensors in the shard's memory, at the right offsets and in the right groups."""

from copy import deepcopy

import torch
from torch import Tensor, nn

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.data_parallel.lab09 import exercises
from labs_helpers.data_parallel.lab09.checks.group_mistakes import MISTAKES, described
from labs_helpers.data_parallel.lab09.checks.kept import LeftAlone
from labs_helpers.data_parallel.lab09.checks.piece_mistakes import pieces_of

DECAY = [{"params": [0, 2], "weight_decay": 0.1, "lr": 0.5}, {"params": [3, 1], "weight_decay": 0.0}]
THREE = [{"params": [1, 4]}, {"params": [5, 0, 2], "betas": (0.8, 0.9)}, {"params": [3], "lr": 0.1}]
ALIKE = [{"params": [0, 2], "weight_decay": 0.1}, {"params": [1], "weight_decay": 0.1}, {"params": [3]}]
ONE = [{"params": [0, 1, 2, 3]}]
TABLE = (
    ("decay for every other parameter", (5, 6, 4, 2), 2, DECAY),
    ("parameters cut across shards, with padding", (7, 2, 9, 5), 3, DECAY),
    ("three groups, some empty here", (4, 1, 6, 3, 2, 8), 4, THREE),
    ("two groups with the same options", (3, 6, 4, 2), 2, ALIKE),
    ("one group, on one rank", (4, 3, 2, 1), 1, ONE),
)
ERRORS = (
    (
        r"IndexError: list",
        "a parameter number is not an index into tensors, because parameters without a piece here have no tensor",
    ),
    (r"^KeyError", "leave a parameter without a piece here out of its group"),
)
ADVICE = "take numels (5, 3) on 2 ranks, and write down rank 1's shard, its pieces, and where each begins in the shard."


@exercise("09/3", "parameter groups for a shard", points=10, minutes=15, reference=exercises.sharded_groups)
def sharded_groups(student):
    def formed(size, pieces, groups):
        shard, count, before = torch.arange(1.0, size + 1), len(pieces), deepcopy(groups)
        left_alone = LeftAlone(lambda: {"the values of shard": shard})
        tensors, found = expect_tuple("", student(shard, pieces, groups), "tensors", "param_groups")
        if any(isinstance(p, Tensor) for one in groups for p in one.get("params", ())) or groups != before:
            cause = "a group is a dict; {**group, …} or copy() makes a new one"
            raise Wrong("", "has changed the given groups", cause=cause)
        _expect_tensors(tensors, shard, count)
        left_alone.expect("the shard holds the weights: take views of it, and write nothing into it")
        _expect_groups(found, tensors, groups)
        place = {id(one): i for i, one in enumerate(tensors)}
        return {
            "tensors": [(one.storage_offset(), one.numel()) for one in tensors],
            "groups": [{**one, "params": sorted(place[id(p)] for p in one["params"])} for one in found],
        }

    yield from judge(student, formed, list(_cases()), MISTAKES, told=_told, same=_same, errors=ERRORS, advice=ADVICE)


def _cases():
    for title, numels, ranks, groups in TABLE:
        held = 0
        for rank in reversed(range(ranks)):  # on later ranks a parameter may be cut at its beginning
            given = (*pieces_of(numels, ranks, rank), groups)
            held += len(given[1])
            line = f"{title}: {held} tensors in the shards' memory on {ranks} rank{'s' * (ranks > 1)}"
            yield Case(f"{title}, rank {rank} of {ranks}", given, described(*given), line * (rank == 0))


def _expect_tensors(tensors, shard: Tensor, count: int) -> None:
    if isinstance(tensors, list | tuple) and tensors and all(isinstance(one, dict) for one in tensors):
        raise Wrong("", "tensors is a list of dicts", cause="return (tensors, param_groups) in this order")
    if not isinstance(tensors, list | tuple) or not all(isinstance(one, Tensor) for one in tensors):
        raise Wrong("", f"tensors is {tensors!r:.70}; expected a list of nn.Parameters")
    if len(tensors) != count:
        cause = "return one tensor per piece, even if several pieces of one shard are adjacent"
        raise Wrong("", f"returned {len(tensors)} tensors for {count} pieces", cause=cause)
    for i, one in enumerate(tensors):
        if one.untyped_storage().data_ptr() != shard.untyped_storage().data_ptr():
            found = f"tensor {i} has its own memory, so updating it does not change the shard"
            cause = "clone(), torch.tensor, +, cat, and indexing with lists copy; slices and nn.Parameter do not"
        elif not one.is_leaf:
            found = f"tensor {i} is not a leaf, and torch.optim accepts only leaves"
            cause = "a slice of an nn.Parameter is the result of an operation; nn.Parameter(…) of the slice is a leaf"
        elif not isinstance(one, nn.Parameter):
            found, cause = "returned plain tensors; expected nn.Parameters", "nn.Parameter(slice)"
        elif one.ndim != 1:
            found, cause = f"a tensor has shape {tuple(one.shape)}; expected a vector", "take a slice of the shard"
        else:
            continue
        raise Wrong("", found, cause=cause)


def _expect_groups(found, tensors, given) -> None:
    if not isinstance(found, list | tuple) or not all(isinstance(one, dict) and "params" in one for one in found):
        raise Wrong("", f"param_groups is {found!r:.70}; expected a list of dicts with 'params'")
    members = [list(one["params"]) for one in found]
    every = [p for one in members for p in one]
    if not all(isinstance(p, Tensor) for p in every):
        left_out = "leave a parameter without a piece here out of its group"
        cause = left_out if None in every else "replace each number with its tensor"
        raise Wrong("", f"params are {members!r:.70}; expected the tensors", cause=cause)
    if not {id(p) for p in every} <= {id(p) for p in tensors}:
        cause = "put the same objects in both: tensors created a second time receive no gradient"
        raise Wrong("", "param_groups contains tensors that are not in tensors", cause=cause)
    if {id(one) for one in found} & {id(one) for one in given}:
        raise Wrong("", "param_groups contains one of the given dicts", cause="create a new dict for each group")


def _same(found: dict, right: dict) -> bool:
    """Return whether both answers agree in everything that both contain."""
    return all(found[what] == right[what] for what in found.keys() & right.keys())


def _told(case: Case, answer: dict) -> tuple[str, str]:
    right, (mine, found) = case.right, answer.values()
    if mine != right["tensors"]:
        return f"tensors are (begin in the shard, elements) {mine}, expected {right['tensors']}", ""
    if len(found) != len(right["groups"]):
        return f"param_groups has {len(found)} groups, expected {len(right['groups'])}", ""
    i = next(i for i, one in enumerate(right["groups"]) if one != found[i])
    return f"group {i} is {found[i]}, where params are positions in tensors; expected {right['groups'][i]}", ""
