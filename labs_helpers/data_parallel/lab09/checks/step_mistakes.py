"""What mistakes make of a step of ZeRO-1."""

from __future__ import annotations

import torch
from torch import nn

from labs_helpers.data_parallel.lab09.checks import shard_mistakes
from labs_helpers.data_parallel.lab09.checks.on_ranks import sent
from labs_helpers.data_parallel.lab09.checks.shard_mistakes import mean_shards


def causes(before, gradients, step, at, decay, lr, run, given):
    """What mistakes make of a step of SGD, on every rank. gradients: [step][rank]; at: `Places`."""
    of_rank, place, size = at
    ranks = range(len(before))
    part = len(before[0]) // size

    def updated(shards):
        """Each rank's update of its own shard with a gradient, put together by an all-gather."""
        own = [before[r] - lr * (shards[r].repeat(size) + decay * before[r]) for r in ranks]
        return [torch.cat([own[o].chunk(size)[i] for i, o in enumerate(of_rank[r])]) for r in ranks]

    own, means = gradients[step], mean_shards(gradients[step], at)
    right = updated(means)
    for said, shards in shard_mistakes.causes([[one] for one in own], at, [len(own[0])], "", ()):
        yield said, updated(shards)
    for said, factor in (
        ("stepped twice", 2),
        ("divided by the number of the other ranks", size / max(1, size - 1)),
        ("divided by 2, whatever the ranks are", size / 2),
        ("divided by the ranks of the job, not by the group's", size / len(before)),
        ("updated in the gradient's direction, not against it", -1),
    ):
        yield said, updated([factor * one for one in means])
    largest = [torch.stack([own[o].double() for o in of_rank[r]]).amax(0).chunk(size)[place[r]] for r in ranks]
    yield "the largest of the gradients, not their mean: ReduceOp.MAX", updated(largest)
    beginning = "this rank's own gradient, and its beginning: nothing is reduced"
    yield beginning, updated([own[r][:part].double() for r in ranks])
    yield "every rank updates with the first shard's gradient", updated([means[of_rank[r][0]] for r in ranks])
    if step:
        earlier = mean_shards(gradients[0], at)
        still = [a + b for a, b in zip(means, earlier, strict=True)]
        yield "the gradient of the step before is still in it", updated(still)
        yield "the gradient of the step before, once more", updated(earlier)

    def by_piece(parts_of):
        """parts_of: (a rank's mean shard, the elements of its pieces) → the .grad of each."""
        shards = []
        for mine, (_, _, pieces, *_) in zip(means, given, strict=True):
            parts = parts_of(mine, [end - begin for _, begin, end in pieces])
            flat = torch.cat([mine[:0], *parts])
            shards.append(nn.functional.pad(flat, (0, part - len(flat))))
        return updated(shards)

    turned = by_piece(lambda mine, lengths: mine[: sum(lengths)].split(lengths[::-1])[::-1])
    yield "the gradient's parts go to the tensors in reverse", turned
    start = "each tensor gets the beginning of the gradient's shard, not its own part"
    yield start, by_piece(lambda mine, lengths: [mine[:n] for n in lengths])
    yield "the gradient is gathered, not the parameters", [torch.cat([means[o] for o in of_rank[r]]) for r in ranks]

    def joined(rank_of, part_of=lambda r, i: i):
        """On each rank r the parts i of one rank's update, or of what was there, as if gathered."""
        return [torch.cat([rank_of(r, i).chunk(size)[part_of(r, i)] for i in range(size)]) for r in ranks]

    no_gather = "every rank has its own shard's update alone: nothing is gathered"
    if any(kind == "all-gather" for kind, _ in sent(run, 0)):
        no_gather = "gathered before the step has updated the shards, or not into whole"
    yield no_gather, joined(lambda r, i: (right if i == place[r] else before)[r])
    missing = "no update of whole: optimizer.step() is missing, or its tensors have no .grad by then, or other memory"
    yield missing, list(before)
    for said, other in (
        ("another rank's shard is gathered: of the rank before", lambda r, i: (i - 1) % size),
        ("another rank's shard is gathered: the order is reversed", lambda r, i: size - 1 - i),
        ("every rank brings the first shard of whole to the all-gather, not its own", lambda r, i: 0),
    ):
        yield said, joined(lambda r, i, other=other: (right if other(r, i) == i else before)[r], other)
    added = "the ranks' whole tensors are added up; their shards are to be gathered"
    yield added, [(size - 1) * before[r] + right[r] for r in ranks]
    of_first = "rank 0's shard alone is updated: one rank steps, or its whole is sent to all"
    yield of_first, joined(lambda r, i: (right if i == 0 else before)[r])
    everything = "every rank updates all of whole with its own gradient"
    yield everything, [before[r] - lr * (own[r].double() + decay * before[r]) for r in ranks]
