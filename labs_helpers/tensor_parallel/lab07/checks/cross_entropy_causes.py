"""What common mistakes make of the loss of a split vocabulary, and of its gradient."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_mistakes import NO_SHIFT, mistakes, shifts
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_ways import Steps, Way, steps

TARGET = "the target's logit is to be added up over the ranks, 0 where it is not"
MEAN = "the loss is the mean over the tokens of all sequences"
NATS = "nats are of the natural logarithm, torch.log"
NO_TARGET = "the target's logit is not subtracted"
PER_TOKEN = "the loss is a mean: divide the gradient by the number of tokens, batch · length"
OWN_PART = "each rank's gradient is of its own part of the vocabulary; nothing of it is to be exchanged"


def loss_causes(logits: list[Tensor], targets: Tensor, extreme: bool) -> Candidates:
    """Their answers: the loss on all ranks. extreme: only what shows with logits of ±10,000."""

    def losses(way: Way) -> list[Tensor]:
        return [one.mean() for one in steps(logits, targets, way).losses()]

    for sentence, way in shifts() if extreme else mistakes(len(logits)):
        yield sentence, losses(way)
        if way.mask != "right":  # what is wrongly counted is another number before the shift
            yield sentence, losses(replace(way, shifted=False))
    right = steps(logits, targets, Way())
    if extreme:
        yield NO_SHIFT, [torch.tensor(math.nan)] * len(logits)  # inf / inf
        yield from _of_probabilities(right)
        return
    yield (
        "one rank alone knows the target's logit: add it up over the ranks, 0 where it is not",
        losses(Way(target="own")),
    )
    yield f"{TARGET}; it is the largest of them, which may be that 0", losses(Way(target="largest"))
    yield f"{TARGET}; it is the largest of them", losses(Way(target="largest", mask="clamped"))
    yield f"{TARGET}; it is their mean", losses(Way(target="mean"))
    minus = "−inf stands for the target of another rank, and so the sum is −inf: what adds nothing is 0"
    yield minus, [torch.tensor(math.inf)] * len(logits)
    yield from _of_tokens(right)
    yield from _of_terms(right)


def _of_tokens(right: Steps) -> Candidates:
    """Where each token's loss is right."""
    losses, mine = right.losses(), [one.sum(-1) for one in right.one]
    own = "it is of the tokens alone whose targets are this rank's; all ranks have each token's loss"
    for counts in (mine, [torch.ones_like(one) for one in mine]):
        yield own, [(one * its).sum() / by.sum() for one, its, by in zip(losses, mine, counts, strict=True)]
    means = torch.stack([(one * its).sum() / its.sum() for one, its in zip(losses, mine, strict=True)])
    uneven = "the ranks have different numbers of targets: a mean of their means is not the mean"
    yield uneven, [means.mean()] * len(mine)
    batch, length = losses[0].shape
    for number in (1, batch, length):
        yield MEAN, [one.sum() / number for one in losses]
    for dim in (0, 1):
        yield MEAN, [one.mean(dim) for one in losses]
        yield MEAN, [one.sum(dim) for one in losses]
    yield MEAN, losses
    same = "all ranks have the same loss: "
    yield f"{same}nothing is to be divided by their number", [one.mean() / len(losses) for one in losses]
    yield f"{same}nothing is to be added up over them", [one.mean() * len(losses) for one in losses]
    yield "the sign is wrong: log of the sum minus the target's logit", [-one.mean() for one in losses]
    for base in (2, 10):
        yield f"{NATS}, not log{base}", [one.mean() / math.log(base) for one in losses]


def _of_terms(right: Steps) -> Candidates:
    """Where the sum of exponentials and the target's logit are right, and not what is made of them."""
    terms = list(zip(right.total, right.target, right.largest, strict=True))
    ranks = len(terms)
    for sign in (0, 1):  # the sum's logarithm after the shift, or before it
        often = "the sum of exponentials is the same on all ranks already: adding its logarithm up counts it p times"
        whole = [ranks * (total.log() + sign * largest) - at - sign * largest for total, at, largest in terms]
        yield often, [one.mean() for one in whole]
    for base in (2, 10):
        yield f"{NATS}, not log{base}", [(total.log() / math.log(base) - at).mean() for total, at, _ in terms]
    yield "the logarithm of the sum is missing", [(total - at).mean() for total, at, _ in terms]
    yield NO_TARGET, [total.log().mean() for total, _, _ in terms]
    yield NO_TARGET, [(total.log() + largest).mean() for total, _, largest in terms]
    both = "the largest logit is subtracted in the sum and not at the target, or at the target alone; it takes both"
    for sign in (-1, 1):
        yield both, [(total.log() - at + sign * largest).mean() for total, at, largest in terms]
    small = "something is added to the sum before its logarithm; it is 1 or more as it is"
    for more in (1.0, 1e-3, 1e-4, 1e-5, 1e-6):
        yield small, [((total + more).log() - at).mean() for total, at, _ in terms]


def _of_probabilities(right: Steps) -> Candidates:
    tiny = "float32 has no such small probability: log(sum) − logit needs none"
    for least in (0.0, 1e-30, 1e-20, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5):
        shares = [at.exp() / total for total, at in zip(right.total, right.target, strict=True)]
        yield tiny, [-(share + least).log().mean() for share in shares]
        yield tiny, [-share.clamp(min=least).log().mean() for share in shares]


def gradient_causes(logits: list[Tensor], targets: Tensor, extreme: bool) -> Candidates:
    """Their answers: the gradient on all ranks, where the loss is right. extreme: as above."""
    (batch, length), ranks = targets.shape, len(logits)
    count = batch * length
    for sentence, way in list(shifts())[:2] if extreme else mistakes(ranks):
        yield sentence, [one / count for one in steps(logits, targets, way).gradients()]
    if extreme:
        return
    right = steps(logits, targets, Way())
    gradients = right.gradients()
    yield "the −1 at the target is missing", [one / count for one in right.gradients(0.0)]
    yield "the 1 at the target is to be subtracted", [one / count for one in right.gradients(-1.0)]
    masked = "the mask is for the 1 at the target alone; the softmax counts for all tokens"
    yield masked, [one * at.sum(-1, keepdim=True) / count for one, at in zip(gradients, right.one, strict=True)]
    rows = logits[0].shape[-1]
    for number in (1, batch, length, count**2, count * rows, count * rows * ranks):
        yield PER_TOKEN, [one / number for one in gradients]
    part = "the number of tokens divides both, the softmax and the 1 at the target"
    yield part, [one / count for one in right.gradients(count)]
    yield part, right.gradients(1 / count)
    yield "the sign is wrong: softmax minus 1 at the target", [-one / count for one in gradients]
    terms = list(zip(right.exponentials, right.total, right.one, strict=True))
    yield "the exponentials are to be divided by their sum", [(one - at) / count for one, _, at in terms]
    log = "the softmax divides by the sum of exponentials, not by its logarithm"
    yield log, [(one / total.log()[..., None] - at) / count for one, total, at in terms]
    shifted = "the exponentials are of the logits after the shift, and so is the sum that divides them"
    for sign in (-1, 1):
        factors = [(sign * one).exp()[..., None] for one in right.largest]
        parts = zip(terms, factors, strict=True)
        yield shifted, [(one * factor / total[..., None] - at) / count for (one, total, at), factor in parts]
    summed = torch.stack(gradients).sum(0) / count
    yield OWN_PART, [summed] * ranks
    yield OWN_PART, [summed / ranks] * ranks
    factor = "the number of ranks is no factor of the gradient; each has its own part of one"
    for times in (ranks, 1 / ranks):
        yield factor, [times * one / count for one in gradients]
    for dim in range(summed.ndim):
        yield OWN_PART, [torch.cat(gradients, dim) / count] * ranks
