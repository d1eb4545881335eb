"""Gradients whose mean is cut into shards over groups of ranks, and the results of mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from labs_helpers.data_parallel.lab09.shards import cut


class Places(NamedTuple):
    """For each rank its group and its place there. size: of every group."""

    of_rank: list[list[int]]
    place: list[int]
    size: int


def places(ranks: int, groups: list[list[int]] | None) -> Places:
    """Return the places of all ranks. groups: lists of ranks, or None for a single group."""
    members = groups or [list(range(ranks))]
    of_rank = [next(group for group in members if rank in group) for rank in range(ranks)]
    return Places(of_rank, [group.index(rank) for rank, group in enumerate(of_rank)], len(members[0]))


def mean_shards(of_ranks: Sequence[Tensor], at: Places, front: bool = False) -> list[Tensor]:
    """Return each rank's shard of the mean over its group, in float64."""
    means = [sum(of_ranks[other].double() for other in group) / at.size for group in at.of_rank]
    return [cut(mean, at.size, front)[place] for mean, place in zip(means, at.place, strict=True)]


def causes(
    own: list[list[Tensor]], at: Places, sizes: Sequence[int], order: str, arrivals: Sequence[Sequence[int]]
) -> Iterator[tuple[str, list[Tensor]]]:
    """Yield the results of mistakes, as (sentence, shard per rank).

    own: [rank][pass] → flat gradient. sizes: elements of its parameters. arrivals: orders in which their gradients may
    arrive; order: the sentence for using one of these.
    """
    passes = len(own[0])
    total = [sum(one) for one in own]
    right = mean_shards(total, at)
    yield (
        "this is the sum over the ranks: the division by their number is missing, or its result is not used",
        [at.size * s for s in right],
    )
    yield "divided by the number of ranks twice", [one / at.size for one in right]
    alone = [cut(one.double(), at.size)[place] for one, place in zip(total, at.place, strict=True)]
    yield "this is the rank's own gradient: nothing is reduced", alone
    yield "this is the rank's own gradient, divided: nothing is reduced", [one / at.size for one in alone]
    yield "the zeros are in front, but belong after the last gradient", mean_shards(total, at, front=True)
    if passes > 1:

        def weighted(weight):
            """Add the passes, each weighted by how many follow it."""
            return mean_shards([sum(weight(passes - 1 - k) * g for k, g in enumerate(one)) for one in own], at)

        yield (
            "only the last pass counts: each pass must add to the existing gradient",
            mean_shards([one[-1] for one in own], at),
        )
        yield "only the first pass counts: later ones are not added", mean_shards([one[0] for one in own], at)
        yield "the existing shard.grad is added twice", weighted(lambda behind: 2**behind)
    for arrived in arrivals:
        turned = [torch.cat([one.split(list(sizes))[i] for i in arrived]) for one in total]
        yield order, mean_shards(turned, at)


def other_padding(found: Sequence[Tensor], right: Sequence[Tensor], n: int, at: Places) -> list[Tensor]:
    """Return the right values, with the values found after the first n elements."""
    mixed = []
    for mine, one, place in zip(found, right, at.place, strict=True):
        kept = max(0, min(len(one), n - place * len(one)))
        mixed.append(torch.cat([one[:kept], mine[kept:]]) if getattr(mine, "shape", ()) == one.shape else one)
    return mixed
