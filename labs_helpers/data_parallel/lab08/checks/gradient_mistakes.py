"""What common mistakes leave in a .grad that should hold the mean over the ranks."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

SENTENCES = {
    "sum": "the sum over the ranks, not the mean: a division by dist.get_world_size(group) is missing",
    "twice": "the mean is taken twice: the sum is divided by the number of ranks two times",
    "own": "this rank's own gradient: it was not sent, or what came of it did not get into .grad",
    "own part": "this rank's own gradient, divided by the number of ranks: it was never added to the others'",
    "none": ".grad is None: a parameter that this rank has not used gets the mean as well",
    "zero": "0: the mean never got there",
    "first": "rank 0's gradient: a broadcast adds nothing up",
    "largest": "the largest of the ranks' gradients: op is SUM unless it is told otherwise",
    "users": "divided by the number of ranks that have used it; a rank that has not counts as 0",
    "world": "divided by the number of all ranks, dist.get_world_size() without group",
    "all ranks": "added up over all ranks: without group= a collective is for all",
    "others": "divided by the number of other ranks",
    "rank": "divided by this rank's number, not by how many there are",
    "times": "multiplied by the number of ranks, not divided",
    "stale": "the mean of the step before: the gradient of this step was not sent",
    "old and new": "the means of this step and of the step before added up",
    "stale sum": "the sum of the step before is still in it",
    "by 2": "a division by 2, whatever the size of the group is",
    "by 3": "a division by 3, whatever the size of the group is",
    "by 4": "a division by 4, whatever the size of the group is",
    "unread": "not a number: it was read before the all-reduce was done; wait() on its handle first",
    "least": "the smallest of the ranks' gradients: op is SUM unless it is told otherwise",
    "some divide": "only rank 0 divides; the others keep the sum",
    "undivided": "where this rank's gradient was None the sum is not divided",
    "mean of all": "mean() goes over the elements; the mean that is asked for goes over the ranks",
    "parameters": "divided by the number of parameters, not of ranks",
    "cleared": ".grad is None afterwards: the mean is what it has to hold",
    "rounded": "the mean, rounded to fewer bits",
    "memory": "the right numbers in another order: they lie in memory as a transposed gradient does",
    "whole": "a division of integers, //, rounds down",
}


ON_ONE = {"unread": "reduce leaves the sum on one rank alone; all_reduce brings it to all"}


def candidates_of(own, before, world, right, found) -> Iterator[tuple[str, list]]:
    """(key of SENTENCES, what each rank would have)."""
    p = len(own)
    names = list(right)
    every = {n: [_or_zero(one[n], right[n]) for one in own] for n in names}
    total = {n: sum(every[n]) for n in names}
    used = {n: sum(one[n] is not None for one in own) for n in names}

    def all_alike(function):
        return [{n: function(n) for n in names}] * p

    def each(function):
        return [{n: function(n, r) for n in names} for r in range(p)]

    yield "sum", all_alike(lambda n: total[n])
    yield "twice", all_alike(lambda n: total[n] / p**2)
    yield "own", each(lambda n, r: own[r][n])
    yield "own part", each(lambda n, r: every[n][r] / p)
    yield "none", each(lambda n, r: own[r][n] if own[r][n] is None else right[n])
    yield "zero", all_alike(lambda n: total[n] * 0)
    yield "first", all_alike(lambda n: every[n][0])
    yield "first", all_alike(lambda n: every[n][0] / p)
    yield "largest", all_alike(lambda n: torch.stack(every[n]).amax(0))
    yield "largest", all_alike(lambda n: torch.stack(every[n]).amax(0) / p)
    yield "least", all_alike(lambda n: torch.stack(every[n]).amin(0))
    yield "some divide", each(lambda n, r: total[n] if r else total[n] / p)
    yield "undivided", each(lambda n, r: total[n] if own[r][n] is None else total[n] / p)
    yield "mean of all", all_alike(lambda n: torch.full_like(total[n], total[n].mean()))
    yield "mean of all", all_alike(lambda n: torch.full_like(total[n], total[n].mean() / p))
    if p != len(names):
        yield "parameters", all_alike(lambda n: total[n] / len(names))
    yield "cleared", all_alike(lambda n: None)
    yield "users", all_alike(lambda n: total[n] / max(1, used[n]))
    yield "times", all_alike(lambda n: total[n] * p)
    yield "whole", all_alike(lambda n: total[n] // p)
    if p > 2:
        yield "others", all_alike(lambda n: total[n] / (p - 1))
        yield "rank", each(lambda n, r: total[n] / max(1, r))
    for other in {2, 3, 4} - {p}:
        yield f"by {other}", all_alike(lambda n, other=other: total[n] / other)
    yield "rank", each(lambda n, r: total[n] / r if r else total[n] * torch.inf)
    yield "rank", each(lambda n, r: total[n] / (r + 1))
    if world:
        whole = {n: sum(_or_zero(one[n], right[n]) for one in world) for n in names}
        yield "world", all_alike(lambda n: total[n] / len(world))
        yield "all ranks", all_alike(lambda n: whole[n] / p)
        yield "all ranks", all_alike(lambda n: whole[n] / len(world))
        yield "all ranks", all_alike(lambda n: whole[n])
    if before:
        old = {n: sum(_or_zero(one[n], right[n]) for one in before) for n in names}
        yield "stale", all_alike(lambda n: old[n] / p)
        yield "old and new", all_alike(lambda n: (old[n] + total[n]) / p)
        yield "old and new", each(lambda n, r: old[n] / p + every[n][r])
        yield "stale sum", all_alike(lambda n: old[n])
        yield "stale sum", all_alike(lambda n: (old[n] + total[n]) / p)
        yield "stale", each(lambda n, r: _or_zero(before[r][n], right[n]))
    yield "memory", all_alike(lambda n: right[n].t().reshape(right[n].shape) if right[n].ndim == 2 else right[n])
    yield "memory", all_alike(lambda n: right[n].reshape(right[n].shape[::-1]).t() if right[n].ndim == 2 else right[n])
    # What a rank holds of unfinished communication is not a number.
    if any(_nan(grads[n]) for grads in found for n in names):
        yield "unread", [{n: grads[n] if _nan(grads[n]) else right[n] for n in names} for grads in found]
    if all(_roughly(grads[n], right[n]) for grads in found for n in names):
        yield "rounded", [dict(grads) for grads in found]


def _roughly(found, right) -> bool:
    """As far as bfloat16 goes, element by element."""
    near = found is not None and found.shape == right.shape
    return near and bool(((found.double() - right).abs() <= 2.0**-7 * right.abs()).all())


def _nan(tensor) -> bool:
    return tensor is not None and bool(tensor.isnan().any())


def _or_zero(values, like) -> Tensor:
    return torch.zeros(like.shape, dtype=torch.float64) if values is None else values
