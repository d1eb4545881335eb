"""What the passes of a step of exercise 6 add up to, and what mistakes make of it: sentence → each rank's gradients."""

from __future__ import annotations

import torch


def sums_of(step, size):
    """Each rank's gradients of all passes together."""
    return [
        {
            name: sum(some)
            if (some := [one.own[rank][name] for one in step.passes if one.own[rank][name] is not None])
            else None
            for name in step.passes[0].own[rank]
        }
        for rank in range(size)
    ]


def by_buckets(case, own, members):
    total = {n: sum(v for r in members if (v := own[r][n]) is not None) for n in own[0]}
    divided = {n: v / len(case.buckets) if isinstance(v, torch.Tensor) else None for n, v in total.items()}
    return {"divided by the number of buckets, not of ranks": [divided] * len(members)}


def left_in_views(step, before, members, number):
    """What a view that was not set to 0 contributes: the mean of the step before, where a rank has no gradient."""
    if not before or len(step.passes) > 1:
        return {}
    own, p = step.passes[0].own, len(members)
    old = [before[rank] for rank in members]
    mean = {
        n: sum(one[n] for one in old if one[n] is not None) / p
        for n in old[0]
        if any(one[n] is not None for one in old)
    }
    left = {n: sum(own[r][n] if own[r][n] is not None else mean.get(n, 0) for r in members) / p for n in old[0]}
    return {"stale sum": [left] * p}


def of_some_passes(step, members):
    """What is left where only one of several backward passes counts."""
    if len(step.passes) == 1:
        return {}
    p = len(members)

    def mean(passes):
        every = {
            n: [one.own[r][n] for one in passes for r in members if one.own[r][n] is not None] for n in passes[0].own[0]
        }
        return [
            {
                n: sum(some) / p
                if some
                else 0 * step.passes[0].own[0][n]
                if step.passes[0].own[0][n] is not None
                else None
                for n, some in every.items()
            }
        ] * p

    return {
        "the backward pass outside of no_sync() alone: what no_sync() has added up is lost": mean(step.passes[-1:]),
        "the backward passes within no_sync() alone: the last one did not arrive": mean(step.passes[:-1]),
        "the mean over the backward passes; they add up": [
            {n: v / len(step.passes) if v is not None else None for n, v in mean(step.passes)[0].items()}
        ]
        * p,
    }
