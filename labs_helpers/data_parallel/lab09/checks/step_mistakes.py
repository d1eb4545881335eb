"""What mistakes make of a step of ZeRO-1."""

from __future__ import annotations

import torch

from labs_helpers.data_parallel.lab09.checks.on_ranks import sent


def causes(before, means, gradients, step, of_rank, place, decay, lr, run, given):
    """What mistakes make of a step of SGD."""
    ranks = range(len(before))
    size = len(of_rank[0])

    def updated(gradient_of, old=before):
        """Each rank's own update of its own shard, put together by an all-gather."""
        own = [old[r] - lr * (gradient_of(r) + decay * old[r]) for r in ranks]
        return [torch.cat([own[o].chunk(size)[i] for i, o in enumerate(of_rank[r])]) for r in ranks]

    def mean(r):
        return means[r]

    def placed(values, r):
        """values as rank r's shard, zeros elsewhere."""
        flat, part = torch.zeros_like(before[r]), len(before[r]) // size
        flat[place[r] * part :][: len(values[:part])] = values[:part]
        return flat

    right = updated(mean)
    yield (
        "the sum of the gradients, not the mean: a division by the ranks is missing",
        updated(lambda r: size * means[r]),
    )
    yield "divided by the ranks twice", updated(lambda r: means[r] / size)
    yield "multiplied by the ranks", updated(lambda r: size * size * means[r])
    yield "stepped twice", updated(lambda r: 2 * means[r])
    yield "divided by the number of the other ranks", updated(lambda r: size * means[r] / max(1, size - 1))
    yield "divided by 2, whatever the ranks are", updated(lambda r: size * means[r] / 2)
    yield "divided by the ranks of the job, not by the group's", updated(lambda r: size * means[r] / len(before))
    yield (
        "the largest of the gradients, not their mean: ReduceOp.MAX",
        updated(lambda r: torch.stack([gradients[step][o].double() for o in of_rank[r]]).amax(0)),
    )
    yield (
        "this rank's own gradient, and its beginning: nothing is reduced",
        updated(lambda r: placed(gradients[step][r].double(), r)),
    )

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
    yield "this rank's own gradient: nothing is reduced", updated(lambda r: gradients[step][r].double())
    yield "this rank's own gradient, divided: nothing is reduced", updated(lambda r: gradients[step][r].double() / size)
    yield (
        "every rank updates with the first shard's gradient",
        updated(lambda r: placed(means[r].chunk(size)[0], r) if size > 1 else means[r]),
    )

    def from_its_start(r):
        """Every tensor gets the beginning of the shard's gradient."""
        mine, pieces = means[r].chunk(size)[place[r]], given[r][2]
        return placed(torch.cat([mine[: end - begin] for _, begin, end in pieces] or [mine[:0]]), r)

    yield "each tensor gets the beginning of the gradient's shard, not its own part", updated(from_its_start)

    if step:
        yield (
            "the gradient of the step before is still in it",
            updated(lambda r: means[r] + torch.stack([gradients[0][o].double() for o in of_rank[r]]).mean(0)),
        )
        yield (
            "the gradient of the step before, once more",
            updated(lambda r: torch.stack([gradients[0][o].double() for o in of_rank[r]]).mean(0)),
        )
    no_gather = [
        torch.cat([(right if o == r else before)[r].chunk(size)[i] for i, o in enumerate(of_rank[r])]) for r in ranks
    ]
    gathered = any(kind == "all-gather" for kind, _ in sent(run, 0))
    yield (
        (
            "gathered before the step has updated the shards, or not into whole"
            if gathered
            else "every rank has its own shard's update alone: nothing is gathered"
        ),
        no_gather,
    )
    yield (
        "no update of whole: optimizer.step() is missing, or its tensors have no .grad by then, or other memory",
        list(before),
    )
    yield "updated in the gradient's direction, not against it", updated(lambda r: -means[r])
    for said, other in (
        ("another rank's shard is gathered: of the rank before", lambda i: (i - 1) % size),
        ("another rank's shard is gathered: the order is reversed", lambda i: size - 1 - i),
    ):
        yield said, [torch.cat([(right if other(i) == i else before)[r].chunk(size)[other(i)] for i in range(size)])
                     for r in ranks]  # fmt: skip
    yield (
        "the ranks' whole tensors are added up; their shards are to be gathered",
        [(size - 1) * before[r] + right[r] for r in ranks],
    )
    yield (
        "rank 0's whole is sent to all: it has the update of rank 0's shard alone",
        [torch.cat([(right if i == 0 else before)[r].chunk(size)[i] for i in range(size)]) for r in ranks],
    )
    first_of_all = [
        torch.cat([(right if o == of_rank[r][0] else before)[r].chunk(size)[0] for o in of_rank[r]]) for r in ranks
    ]
    yield "every rank brings the first shard of whole to the all-gather, not its own", first_of_all
    yield (
        "every rank updates all of whole with its own gradient",
        [before[r] - lr * (gradients[step][r].double() + decay * before[r]) for r in ranks],
    )
    yield "the first tensor alone is updated", updated(lambda r: _first_only(means[r], given[r][2], place[r], size))


def _first_only(mean, pieces, place, size):
    part = len(mean) // size
    kept = torch.zeros_like(mean)
    if pieces:
        n = pieces[0][2] - pieces[0][1]
        kept[place * part : place * part + n] = mean[place * part : place * part + n]
    return kept
