"""The mean of gradients over groups of ranks, and what common mistakes leave in .grad instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from labs_helpers.data_parallel.lab08.checks.replicas import Gradients, Part

Everyone = Sequence[Gradients]  # [rank][name]
Groups = Sequence[Sequence[int]]
Tree = Mapping[int, Gradients]  # [rank][name]
Candidate = tuple[str, Tree | Callable[[], Tree]]  # a sentence, and what its mistake leaves

# Of these an exercise may know more.
TWICE = "the mean is taken twice: the sum is divided by the number of ranks two times"
OWN = "this rank's own gradient: it was not sent, or what came of it did not get into .grad"
OWN_PART = "this rank's own gradient, divided by the number of ranks: it was never added to the others'"
NONE = ".grad is None: a parameter that this rank has not used gets the mean as well"
ZERO = "0: the mean never got there"
STALE = "the mean of the step before: the gradient of this step was not sent"


def with_zeros(own: Everyone, parts: Sequence[Part]) -> list[dict[str, Tensor]]:
    """Return each rank's gradients of all trained parameters, in float64: 0 where it has none."""
    zeros = {part.name: torch.zeros(part.shape).double() for part in parts if part.kind != "frozen"}
    return [{n: zero if one[n] is None else one[n] for n, zero in zeros.items()} for one in own]


def means(own: Everyone, groups: Groups, parts: Sequence[Part]) -> dict[int, dict[str, Tensor]]:
    """Return each rank's means over its group, in float64."""
    full = with_zeros(own, parts)
    of_group = [{n: sum(full[r][n] for r in group) / len(group) for n in full[0]} for group in groups]
    return {r: mean for group, mean in zip(groups, of_group, strict=True) for r in group}


def mistakes(
    own: Everyone, groups: Groups, parts: Sequence[Part], before: Everyone | None = None
) -> Iterator[Candidate]:
    """Yield a sentence and the gradients that its mistake leaves on each rank. before: `own` of the step before."""
    full, right = with_zeros(own, parts), means(own, groups, parts)
    ranks, names = len(own), list(full[0])

    def each(function):
        """function(rank, its group, name) for every gradient, worked out when it is needed."""
        return lambda: {r: {n: function(r, group, n) for n in names} for group in groups for r in group}

    def over(function):
        """A function of the group's gradients, (its ranks, *shape)."""
        return each(lambda r, group, n: function(torch.stack([full[other][n] for other in group])))

    total = over(lambda g: g.sum(0))()

    def by(divisor):
        """The sum, divided by a function of the rank's place in its group and of the group's size."""
        return each(lambda r, group, n: total[r][n] / divisor(group.index(r), len(group)))

    yield "the sum over the ranks, not the mean: a division by dist.get_world_size(group) is missing", total
    yield TWICE, by(lambda r, p: p**2)
    yield OWN, each(lambda r, group, n: own[r][n])
    yield OWN_PART, each(lambda r, group, n: full[r][n] / len(group))
    yield NONE, each(lambda r, group, n: own[r][n] if own[r][n] is None else right[r][n])
    yield ".grad is None afterwards: the mean is what it has to hold", each(lambda r, group, n: None)
    yield ZERO, over(lambda g: 0 * g[0])
    first = "rank 0's gradient: a broadcast adds nothing up"
    yield first, over(lambda g: g[0])
    yield first, over(lambda g: g[0] / len(g))
    largest = "the largest of the ranks' gradients: op is SUM unless it is told otherwise"
    yield largest, over(lambda g: g.amax(0))
    yield largest, over(lambda g: g.amax(0) / len(g))
    yield "the smallest of the ranks' gradients: op is SUM unless it is told otherwise", over(lambda g: g.amin(0))
    yield "only rank 0 divides; the others keep the sum", by(lambda r, p: 1 if r else p)
    undivided = each(lambda r, group, n: (total if own[r][n] is None else right)[r][n])
    yield "where this rank's gradient was None the sum is not divided", undivided
    elements = "mean() goes over the elements; the mean that is asked for goes over the ranks"
    yield elements, over(lambda g: torch.full_like(g[0], g.sum(0).mean()))
    yield elements, over(lambda g: torch.full_like(g[0], g.mean()))
    yield "divided by the number of parameters, not of ranks", by(lambda r, p: len(names))
    used = each(lambda r, group, n: max(1, sum(own[other][n] is not None for other in group)))()
    said = "divided by the number of ranks that have used it; a rank that has not counts as 0"
    yield said, each(lambda r, group, n: total[r][n] / used[r][n])
    yield "multiplied by the number of ranks, not divided", by(lambda r, p: 1 / p)
    yield "a division of integers, //, rounds down", over(lambda g: g.sum(0) // len(g))
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        said = "gradients are rounded before they are added up: they travel in their own dtype, with all its bits"
        yield said, over(lambda g, dtype=dtype: g.to(dtype).double().mean(0))
    number = "divided by this rank's number, not by how many there are"
    yield number, by(lambda r, p: r or 0.0)
    yield number, by(lambda r, p: r + 1)
    if ranks > 2:
        yield number, by(lambda r, p: max(1, r))
        yield "divided by the number of other ranks", by(lambda r, p: max(1, p - 1))
    for other in (2, 3, 4):
        yield f"a division by {other}, whatever the size of the group is", by(lambda r, p, other=other: other)
    if len(groups) > 1:
        yield "divided by the number of all ranks, dist.get_world_size() without group", by(lambda r, p: ranks)
        whole = {n: sum(one[n] for one in full) for n in names}
        for divisor in (len, lambda group: ranks, lambda group: 1):
            said = "added up over all ranks: without group= a collective is for all"
            yield said, each(lambda r, group, n, divisor=divisor: whole[n] / divisor(group))
    if before:
        earlier, old = with_zeros(before, parts), means(before, groups, parts)
        yield STALE, old
        yield STALE, dict(enumerate(earlier))
        for mine in (right, dict(enumerate(full))):
            said = "the means of this step and of the step before added up"
            yield said, each(lambda r, group, n, mine=mine: old[r][n] + mine[r][n])
        yield "the sum of the step before is still in it", each(lambda r, group, n: old[r][n] * len(group))
    memory = "the right numbers in another order: they lie in memory as a transposed gradient does"
    yield memory, each(lambda r, group, n: right[r][n].t().reshape(right[r][n].shape))
    yield memory, each(lambda r, group, n: right[r][n].reshape(right[r][n].shape[::-1]).t())
