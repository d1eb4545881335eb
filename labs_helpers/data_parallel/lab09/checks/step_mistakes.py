"""Results of mistakes in a ZeRO-1 step."""

from __future__ import annotations

import torch
from torch import nn

from labs_helpers.data_parallel.lab09.checks import shard_mistakes
from labs_helpers.data_parallel.lab09.checks.on_ranks import sent
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import mean_shards


def causes(before, gradients, step, at, decay, lr, run, given):
    """Yield the results of mistakes in a step of SGD, on every rank. gradients: [step][rank]; at: `Places`."""
    of_rank, place, size = at
    ranks = range(len(before))
    part = len(before[0]) // size

    def updated(shards):
        """Return each rank's whole after updating its own shard and an all-gather."""
        own = [before[r] - lr * (shards[r].repeat(size) + decay * before[r]) for r in ranks]
        return [torch.cat([own[o].chunk(size)[i] for i, o in enumerate(of_rank[r])]) for r in ranks]

    own, means = gradients[step], mean_shards(gradients[step], at)
    right = updated(means)
    for said, shards in shard_mistakes.causes([[one] for one in own], at, [len(own[0])], "", ()):
        yield said, updated(shards)
    for said, factor in (
        ("stepped twice", 2),
        ("divided by the number of other ranks", size / max(1, size - 1)),
        ("divided by 2 instead of the number of ranks", size / 2),
        ("divided by the number of ranks in the job instead of the group", size / len(before)),
        ("updated in the direction of the gradient instead of against it", -1),
    ):
        yield said, updated([factor * one for one in means])
    largest = [torch.stack([own[o].double() for o in of_rank[r]]).amax(0).chunk(size)[place[r]] for r in ranks]
    yield "the largest gradient is used instead of the mean: ReduceOp.MAX", updated(largest)
    beginning = "the beginning of this rank's own gradient is used: nothing is reduced"
    yield beginning, updated([own[r][:part].double() for r in ranks])
    yield "every rank updates with the first shard's gradient", updated([means[of_rank[r][0]] for r in ranks])
    if step:
        earlier = mean_shards(gradients[0], at)
        still = [a + b for a, b in zip(means, earlier, strict=True)]
        yield "the gradient of the previous step is added again", updated(still)
        yield "the gradient of the previous step is used again", updated(earlier)

    def by_piece(parts_of):
        """Return the update by parts_of: (a rank's mean shard, elements of its pieces) → the .grad of each."""
        shards = []
        for mine, (_, _, pieces, *_) in zip(means, given, strict=True):
            parts = parts_of(mine, [end - begin for _, begin, end in pieces])
            flat = torch.cat([mine[:0], *parts])
            shards.append(nn.functional.pad(flat, (0, part - len(flat))))
        return updated(shards)

    turned = by_piece(lambda mine, lengths: mine[: sum(lengths)].split(lengths[::-1])[::-1])
    yield "the parts of the gradient are assigned to the tensors in reverse", turned
    start = "each tensor gets the beginning of the shard's gradient instead of its own part"
    yield start, by_piece(lambda mine, lengths: [mine[:n] for n in lengths])
    yield (
        "the gradient is gathered instead of the parameters",
        [torch.cat([means[o] for o in of_rank[r]]) for r in ranks],
    )

    def joined(rank_of, part_of=lambda r, i: i):
        """Return on each rank r the parts i of one rank's update, or of the earlier values, as if gathered."""
        return [torch.cat([rank_of(r, i).chunk(size)[part_of(r, i)] for i in range(size)]) for r in ranks]

    no_gather = "every rank has only its own shard's update: the gather is missing"
    if any(kind == "all-gather" for kind, _ in sent(run, 0)):
        no_gather = "the gather runs before the step has updated the shards, or does not write into whole"
    yield no_gather, joined(lambda r, i: (right if i == place[r] else before)[r])
    missing = (
        "whole is not updated: optimizer.step() is missing, or its tensors have no .grad when it runs, or other memory"
    )
    yield missing, list(before)
    for said, other in (
        ("another rank's shard is gathered: that of the previous rank", lambda r, i: (i - 1) % size),
        ("another rank's shard is gathered: the order is reversed", lambda r, i: size - 1 - i),
        ("every rank sends the first shard of whole to the all-gather instead of its own", lambda r, i: 0),
    ):
        yield said, joined(lambda r, i, other=other: (right if other(r, i) == i else before)[r], other)
    added = "the ranks' whole tensors are added, but their shards should be gathered"
    yield added, [(size - 1) * before[r] + right[r] for r in ranks]
    of_first = "only rank 0's shard is updated: one rank steps, or broadcasts its whole"
    yield of_first, joined(lambda r, i: (right if i == 0 else before)[r])
    everything = "every rank updates all of whole with its own gradient"
    yield everything, [before[r] - lr * (own[r].double() + decay * before[r]) for r in ranks]
