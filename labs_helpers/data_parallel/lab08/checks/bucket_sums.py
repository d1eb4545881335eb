"""What the passes of a step of exercise 6 add up to, and what its mistakes make of that."""

from __future__ import annotations

from labs_helpers.data_parallel.lab08.checks.gradient_mistakes import means

STALE = "its view still holds the mean of the step before: without a gradient it is 0 there, zero_()"


def sums_of(passes):
    """Return each rank's gradients of all passes together; None where it has none in any."""

    def added(some):
        return sum(one for one in some if one is not None) if any(one is not None for one in some) else None

    ranks = range(len(passes[0].own))
    return [{name: added([one.own[rank][name] for one in passes]) for name in passes[0].own[rank]} for rank in ranks]


def causes(case, passes, before, groups):
    """Yield a sentence and the gradients that its mistake leaves. before: the passes of the step before, or None."""
    own = sums_of(passes)
    right = means(own, groups, case.parts)

    def times(factor):
        return {r: {n: x * factor(group) for n, x in right[r].items()} for group in groups for r in group}

    yield "divided by the number of buckets, not of ranks", times(lambda group: len(group) / len(case.buckets))
    if len(passes) == 1 and before:
        old = means(sums_of(before), groups, case.parts)
        left = [{n: old[r][n] if x is None else x for n, x in one.items()} for r, one in enumerate(own)]
        yield STALE, means(left, groups, case.parts)
    if len(passes) > 1:
        lost = "the backward pass outside of no_sync() alone: what no_sync() has added up is lost"
        yield lost, means(sums_of(passes[-1:]), groups, case.parts)
        within = "the backward passes within no_sync() alone: the last one did not arrive"
        yield within, means(sums_of(passes[:-1]), groups, case.parts)
        yield "the mean over the backward passes; they add up", times(lambda group: 1 / len(passes))
