"""Compute the mean of gradients over groups of ranks, and the values that common mistakes leave in .grad."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import torch
from torch import Tensor

from labs_helpers.data_parallel.lab08.checks.replicas import Gradients, Part

Everyone = Sequence[Gradients]  # [rank][name]
Groups = Sequence[Sequence[int]]
Tree = Mapping[int, Gradients]  # [rank][name]
Candidate = tuple[str, Tree | Callable[[], Tree]]  # a sentence, and the gradients that its mistake leaves

# An exercise may replace these sentences by more specific ones.
TWICE = "the mean is taken twice: the sum is divided by the number of ranks two times"
OWN = "this rank's own gradient: it was not sent, or the result was not written to .grad"
OWN_PART = "this rank's own gradient, divided by the number of ranks: it was never added to the others'"
NONE = ".grad is None: a parameter that this rank has not used also receives the mean"
ZERO = "0: the mean was never written to .grad"
STALE = "the mean of the previous step: this step's gradient was not sent"


def with_zeros(own: Everyone, parts: Sequence[Part]) -> list[dict[str, Tensor]]:
    """Return each rank's gradients of all trained parameters, in float64: 0 where .grad is None."""
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
    """Yield a sentence and the gradients that its mistake leaves on each rank. before: `own` of the previous step."""
    full, right = with_zeros(own, parts), means(own, groups, parts)
    ranks, names = len(own), list(full[0])

    def each(function):
        """Return a function that evaluates function(rank, its group, name) for every gradient."""
        return lambda: {r: {n: function(r, group, n) for n in names} for group in groups for r in group}

    def over(function):
        """Apply a function to the group's stacked gradients, (ranks of the group, *shape)."""
        return each(lambda r, group, n: function(torch.stack([full[other][n] for other in group])))

    total = over(lambda g: g.sum(0))()

    def by(divisor):
        """Divide the sum by divisor(the rank's number in its group, the group's size)."""
        return each(lambda r, group, n: total[r][n] / divisor(group.index(r), len(group)))

    yield "the sum over the ranks, not the mean: divide by dist.get_world_size(group)", total
    yield TWICE, by(lambda r, p: p**2)
    yield OWN, each(lambda r, group, n: own[r][n])
    yield OWN_PART, each(lambda r, group, n: full[r][n] / len(group))
    yield NONE, each(lambda r, group, n: own[r][n] if own[r][n] is None else right[r][n])
    yield ".grad is None afterwards, but it has to hold the mean", each(lambda r, group, n: None)
    yield ZERO, over(lambda g: 0 * g[0])
    first = "rank 0's gradient: a broadcast adds no values"
    yield first, over(lambda g: g[0])
    yield first, over(lambda g: g[0] / len(g))
    largest = "the largest of the ranks' gradients: leave op at its default, SUM"
    yield largest, over(lambda g: g.amax(0))
    yield largest, over(lambda g: g.amax(0) / len(g))
    yield "the smallest of the ranks' gradients: leave op at its default, SUM", over(lambda g: g.amin(0))
    yield "only rank 0 divides; the others keep the sum", by(lambda r, p: 1 if r else p)
    undivided = each(lambda r, group, n: (total if own[r][n] is None else right)[r][n])
    yield "the sum is not divided where this rank's gradient was None", undivided
    elements = "mean() averages over the elements, but you need the average over the ranks"
    yield elements, over(lambda g: torch.full_like(g[0], g.sum(0).mean()))
    yield elements, over(lambda g: torch.full_like(g[0], g.mean()))
    yield "divided by the number of parameters, not of ranks", by(lambda r, p: len(names))
    used = each(lambda r, group, n: max(1, sum(own[other][n] is not None for other in group)))()
    said = "divided by the number of ranks that used the parameter; the other ranks count as 0"
    yield said, each(lambda r, group, n: total[r][n] / used[r][n])
    yield "multiplied by the number of ranks, not divided", by(lambda r, p: 1 / p)
    yield "integer division, //, rounds down", over(lambda g: g.sum(0) // len(g))
    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        said = "gradients are rounded before they are added: send them in their own dtype"
        yield said, over(lambda g, dtype=dtype: g.to(dtype).double().mean(0))
    number = "divided by this rank's number, not by the number of ranks"
    yield number, by(lambda r, p: r or 0.0)
    yield number, by(lambda r, p: r + 1)
    if ranks > 2:
        yield number, by(lambda r, p: max(1, r))
        yield "divided by the number of other ranks", by(lambda r, p: max(1, p - 1))
    for other in (2, 3, 4):
        yield f"divided by {other}, whatever the size of the group", by(lambda r, p, other=other: other)
    if len(groups) > 1:
        yield "divided by the number of all ranks, dist.get_world_size() without group", by(lambda r, p: ranks)
        whole = {n: sum(one[n] for one in full) for n in names}
        for divisor in (len, lambda group: ranks, lambda group: 1):
            said = "summed over all ranks: without group=, a collective includes every rank"
            yield said, each(lambda r, group, n, divisor=divisor: whole[n] / divisor(group))
    if before:
        earlier, old = with_zeros(before, parts), means(before, groups, parts)
        yield STALE, old
        yield STALE, dict(enumerate(earlier))
        for mine in (right, dict(enumerate(full))):
            said = "the mean of this step plus the mean of the previous step"
            yield said, each(lambda r, group, n, mine=mine: old[r][n] + mine[r][n])
        yield "the sum of the previous step is still in .grad", each(lambda r, group, n: old[r][n] * len(group))
    memory = "the right numbers in the wrong order: the layout in memory is that of the transposed gradient"
    yield memory, each(lambda r, group, n: right[r][n].t().reshape(right[r][n].shape))
    yield memory, each(lambda r, group, n: right[r][n].reshape(right[r][n].shape[::-1]).t())
