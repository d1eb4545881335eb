"""What mistakes make of a step of ZeRO-1."""

from __future__ import annotations

import torch

from labs_helpers.data_parallel.lab09.checks.on_ranks import sent


def causes(before, gradients, step, at, decay, lr, run, given):
    """What mistakes make of a step of SGD, on every rank. gradients: [step][rank]; at: `Places`."""
    of_rank, place, size = at
    ranks = range(len(before))

    def mean_of(step):
        return [torch.stack([gradients[step][other].double() for other in group]).mean(0) for group in of_rank]

    means = mean_of(step)

    def updated(gradient_of, old=before):
        """Each rank's own update of its own shard, put together by an all-gather."""
        own = [old[r] - lr * (gradient_of(r) + decay * old[r]) for r in ranks]
        return [torch.cat([own[o].chunk(size)[i] for i, o in enumerate(of_rank[r])]) for r in ranks]

    def placed(values, r):
        """values as rank r's shard, zeros elsewhere."""
        flat, part = torch.zeros_like(before[r]), len(before[r]) // size
        flat[place[r] * part :][: len(values[:part])] = values[:part]
        return flat

    right = updated(means.__getitem__)

    def scaled(times):
        return updated(lambda r: times * means[r])

    own = gradients[step]
    yield "the sum of the gradients, not the mean: a division by the ranks is missing", scaled(size)
    yield "divided by the ranks twice", scaled(1 / size)
    yield "multiplied by the ranks", scaled(size * size)
    yield "stepped twice", scaled(2)
    yield "divided by the number of the other ranks", scaled(size / max(1, size - 1))
    yield "divided by 2, whatever the ranks are", scaled(size / 2)
    yield "divided by the ranks of the job, not by the group's", scaled(size / len(before))
    largest = [torch.stack([own[o].double() for o in group]).amax(0) for group in of_rank]
    yield "the largest of the gradients, not their mean: ReduceOp.MAX", updated(largest.__getitem__)
    beginning = "this rank's own gradient, and its beginning: nothing is reduced"
    yield beginning, updated(lambda r: placed(own[r].double(), r))

    def turned(r):
        mine, pieces = means[r].chunk(size)[place[r]], given[r][2]
        n = sum(e - b for _, b, e in pieces)
        lengths, parts, at = [e - b for _, b, e in pieces], {}, 0
        for i in reversed(range(len(pieces))):
            parts[i] = mine[at : at + lengths[i]]
            at += lengths[i]
        return placed(torch.cat([parts[i] for i in range(len(pieces))] or [mine[:n]]), r)

    yield "the gradient's parts go to the tensors in reverse", updated(turned)
    yield "the gradient is gathered, not the parameters", [means[r] for r in ranks]
    yield "this rank's own gradient: nothing is reduced", updated(lambda r: own[r].double())
    yield "this rank's own gradient, divided: nothing is reduced", updated(lambda r: own[r].double() / size)
    first = "every rank updates with the first shard's gradient"
    yield first, updated(lambda r: placed(means[r].chunk(size)[0], r) if size > 1 else means[r])

    def from_its_start(r):
        """Every tensor gets the beginning of the shard's gradient."""
        mine, pieces = means[r].chunk(size)[place[r]], given[r][2]
        return placed(torch.cat([mine[: end - begin] for _, begin, end in pieces] or [mine[:0]]), r)

    yield "each tensor gets the beginning of the gradient's shard, not its own part", updated(from_its_start)

    if step:
        earlier = mean_of(0)
        yield "the gradient of the step before is still in it", updated(lambda r: means[r] + earlier[r])
        yield "the gradient of the step before, once more", updated(earlier.__getitem__)

    def joined(rank_of, part_of=lambda r, i: i):
        """On each rank r the parts i of one rank's update, or of what was there, as if gathered."""
        return [torch.cat([rank_of(r, i).chunk(size)[part_of(r, i)] for i in range(size)]) for r in ranks]

    no_gather = "every rank has its own shard's update alone: nothing is gathered"
    if any(kind == "all-gather" for kind, _ in sent(run, 0)):
        no_gather = "gathered before the step has updated the shards, or not into whole"
    yield no_gather, joined(lambda r, i: (right if i == place[r] else before)[r])
    missing = "no update of whole: optimizer.step() is missing, or its tensors have no .grad by then, or other memory"
    yield missing, list(before)
    yield "updated in the gradient's direction, not against it", updated(lambda r: -means[r])
    for said, other in (
        ("another rank's shard is gathered: of the rank before", lambda r, i: (i - 1) % size),
        ("another rank's shard is gathered: the order is reversed", lambda r, i: size - 1 - i),
    ):
        yield said, joined(lambda r, i, other=other: (right if other(r, i) == i else before)[r], other)
    added = "the ranks' whole tensors are added up; their shards are to be gathered"
    yield added, [(size - 1) * before[r] + right[r] for r in ranks]
    of_first = "rank 0's whole is sent to all: it has the update of rank 0's shard alone"
    yield of_first, joined(lambda r, i: (right if i == 0 else before)[r])
    same_place = "every rank brings the first shard of whole to the all-gather, not its own"
    yield same_place, joined(lambda r, i: (right if i == 0 else before)[r], lambda r, i: 0)
    everything = "every rank updates all of whole with its own gradient"
    yield everything, [before[r] - lr * (own[r].double() + decay * before[r]) for r in ranks]
    yield "the first tensor alone is updated", updated(lambda r: _first_only(means[r], given[r][2], place[r], size))


def _first_only(mean, pieces, place, size):
    part = len(mean) // size
    kept = torch.zeros_like(mean)
    if pieces:
        n = pieces[0][2] - pieces[0][1]
        kept[place * part : place * part + n] = mean[place * part : place * part + n]
    return kept
