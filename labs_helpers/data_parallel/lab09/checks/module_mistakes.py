"""What mistakes make of the gradients of a sharded module."""

from __future__ import annotations

import torch
from torch import nn


def parts_of(of_ranks, of_rank, place, divide=True):
    found = []
    for rank, group in enumerate(of_rank):
        total = sum(of_ranks[other].double() for other in group) / (len(group) if divide else 1)
        found.append(nn.functional.pad(total, (0, -len(total) % len(group))).chunk(len(group))[place[rank]])
    return found


def causes(own, of_rank, place):
    """own: [rank][pass] → a module's flat gradient."""
    size, passes = len(of_rank[0]), len(own[0])
    total = [sum(one) for one in own]
    yield (
        "the sum over the ranks, not the mean: a division by their number is missing",
        parts_of(total, of_rank, place, divide=False),
    )
    yield "divided by the ranks twice", [one / size for one in parts_of(total, of_rank, place)]
    alone = [parts_of(total, [[r] * size for r in range(len(own))], place, divide=True)[r] for r in range(len(own))]
    yield "this rank's own gradient: nothing is reduced", alone
    yield "this rank's own gradient, divided: nothing is reduced", [one / size for one in alone]
    if passes > 1:
        yield "the last pass alone: it is added to what shard.grad was", parts_of([o[-1] for o in own], of_rank, place)
        yield "the first pass alone: later ones are not added", parts_of([o[0] for o in own], of_rank, place)
        twice = [2 * sum(o[:-1]) + o[-1] for o in own]
        yield "what was in shard.grad is added twice, or p.grad keeps it as well", parts_of(twice, of_rank, place)
    parts = (1, 12, 3) if len(own[0][0]) == 16 else (1, 15, 5)  # scale, weight, bias; they come as 0, 2, 1
    for order in ((0, 2, 1), (2, 1, 0)):
        turned = [torch.cat([one.split(parts)[i] for i in order]) for one in total]
        yield (
            "gradients in the order of their arrival, or in reverse; the order is that of module.parameters()",
            parts_of(turned, of_rank, place),
        )
    before = [nn.functional.pad(one, (-len(one) % size, 0)) for one in total]
    yield "zeros stand in front; they belong behind the last gradient", parts_of(before, of_rank, place)
