"""What common mistakes make of the loss of a split vocabulary, and of its gradient."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_mistakes import NO_SHIFT, mistakes
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_ways import Steps, Way, steps

TARGET = "the target's logit is to be added up over the ranks, 0 where it is not"
MEAN = "the loss is the mean over the tokens of all sequences"
NATS = "nats are of the natural logarithm, torch.log"
NO_TARGET = "the target's logit is not subtracted"
PER_TOKEN = "the loss is a mean: divide the gradient by the number of tokens, batch · length"
OWN_PART = "each rank's gradient is of its own part of the vocabulary; nothing of it is to be exchanged"


def loss_causes(logits: list[Tensor], targets: Tensor) -> Candidates:
    """Their answers: the loss on all ranks."""

    def losses(way: Way) -> list[Tensor]:
        return [one.mean() for one in steps(logits, targets, way).losses()]

    yield NO_SHIFT, [torch.tensor(math.nan)] * len(logits)  # inf / inf
    for sentence, way in mistakes():
        yield sentence, losses(way)
    yield (
        "one rank alone knows the target's logit: add it up over the ranks, 0 where it is not",
        losses(Way(target="own")),
    )
    yield f"{TARGET}; it is the largest of them, which may be that 0", losses(Way(target="largest"))
    yield f"{TARGET}; it is the largest of them", losses(Way(target="largest", mask="clamped"))
    yield f"{TARGET}; it is their mean", losses(Way(target="mean"))
    right = steps(logits, targets, Way())
    yield from _of_tokens(right.losses())
    yield from _of_terms(right)


def _of_tokens(losses: list[Tensor]) -> Candidates:
    """Where each token's loss is right."""
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
    for base in (2, 10):
        yield f"{NATS}, not log{base}", [(total.log() / math.log(base) - at).mean() for total, at, _ in terms]
    yield "the logarithm of the sum is missing", [(total - at).mean() for total, at, _ in terms]
    yield NO_TARGET, [total.log().mean() for total, _, _ in terms]
    yield NO_TARGET, [(total.log() + largest).mean() for total, _, largest in terms]
    both = "the largest logit is subtracted in the sum and not at the target, or at the target alone; it takes both"
    for sign in (-1, 1):
        yield both, [(total.log() - at + sign * largest).mean() for total, at, largest in terms]
    tiny = "float32 has no such small probability: log(sum) − logit needs none"
    for least in (0.0, 1e-30, 1e-20, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5):
        yield tiny, [-(at.exp() / total + least).log().mean() for total, at, _ in terms]
        yield tiny, [-(at.exp() / total).clamp(min=least).log().mean() for total, at, _ in terms]
    small = "something is added to the sum before its logarithm; it is 1 or more as it is"
    for more in (1.0, 1e-3, 1e-4, 1e-5, 1e-6):
        yield small, [((total + more).log() - at).mean() for total, at, _ in terms]


def gradient_causes(logits: list[Tensor], targets: Tensor) -> Candidates:
    """Their answers: the gradient on all ranks, where the loss is right."""
    (batch, length), ranks = targets.shape, len(logits)
    count = batch * length
    for sentence, way in mistakes():
        yield sentence, [one / count for one in steps(logits, targets, way).gradients()]
    right = steps(logits, targets, Way())
    gradients = right.gradients()
    yield "the −1 at the target is missing", [one / count for one in right.gradients(0.0)]
    yield "the 1 at the target is to be subtracted", [one / count for one in right.gradients(-1.0)]
    for number in (1, batch, length, count**2):
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
        moved = zip(terms, right.largest, strict=True)
        yield (
            shifted,
            [(one * (sign * by).exp()[..., None] / total[..., None] - at) / count for (one, total, at), by in moved],
        )
    summed = torch.stack(gradients).sum(0) / count
    yield OWN_PART, [summed] * ranks
    yield OWN_PART, [summed / ranks] * ranks
    yield OWN_PART, [one / count / ranks for one in gradients]
    for dim in range(summed.ndim):
        yield OWN_PART, [torch.cat(gradients, dim) / count] * ranks
