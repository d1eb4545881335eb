"""What common mistakes make of the loss of a split vocabulary, and of its gradient, on all ranks."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import SimpleNamespace

import torch
from torch import Tensor

from labs_helpers.course.verdict import Candidates
from labs_helpers.course.verdict.messages.torch import INDEX_DTYPE, INDEX_OUTSIDE, SIZES_DIFFER
from labs_helpers.tensor_parallel.lab07.checks import cross_entropy_ways as ways
from labs_helpers.tensor_parallel.lab07.checks.cross_entropy_ways import steps

NO_SHIFT = "exp overflows: subtract each token's largest logit of all ranks first"
TOO_MUCH = "a token's logits are all far below what is subtracted, and every exp is 0: take each token's own largest"
NOT_FINITE = "exp overflows, or is 0 everywhere; is it each token's largest logit of all ranks that is subtracted?"
OWN_SHIFT = "each rank subtracts its own largest logit, and such sums do not add up: exchange the largest first"
ELSEWHERE = "a target of another rank has no row here: clamp finds it one, which must not count (a mask, then 0)"
WHOLE = "this rank's part is taken for the whole vocabulary"
SUMS = "the ranks' sums of exponentials are to be added up"
TARGET = "the target's logit is to be added up over the ranks, 0 where it is not"
MEAN = "the loss is the mean over the tokens of all sequences"
OWN_TOKENS = "it is of the tokens alone whose targets are this rank's; all ranks have each token's loss"
NATS = "nats are of the natural logarithm, torch.log"
OFTEN = "the sum of exponentials is the same on all ranks already: adding its logarithm up counts it p times"
NO_TARGET = "the target's logit is not subtracted"
BOTH = "the largest logit is subtracted in the sum and not at the target, or at the target alone; it takes both"
MORE = "something is added to the sum before its logarithm; it is 1 or more as it is"
TINY = "float32 has no such small probability: log(sum) − logit needs none"
PER_TOKEN = "the loss is a mean: divide the gradient by the number of tokens, batch · length"
PART = "the number of tokens divides both, the softmax and the 1 at the target"
OWN_PART = "each rank's gradient is of its own part of the vocabulary; nothing of it is to be exchanged"
ERRORS = (  # pairs (pattern, cause)
    (
        SIZES_DIFFER,
        "(batch, length) meets (batch, length, V / p): [..., None] or keepdim=True gives the first a dimension of 1, "
        "and squeeze() without a dimension drops a batch or a length of 1",
    ),
    (
        f"{INDEX_OUTSIDE}|smaller than num_classes|must be non-negative",
        "a target of another rank has no row in this rank's part: take any row for it (clamp), and let it not count",
    ),
    (
        r"Index tensor must have the same number",
        "gather and scatter take an index of as many dimensions as logits: row[..., None]",
    ),
    (INDEX_DTYPE, "a row is an int64, as targets are; a division by / makes a float of it"),
)
EXTREME: tuple[tuple[str, dict], ...] = (  # what shows with logits of ±10,000 alone: settings of `steps`
    (NO_SHIFT, {"shift": torch.zeros_like}),
    (TOO_MUCH, {"shift": lambda own: torch.full_like(own, float(own.max()))}),
    ('the ranks\' largest logits are added up; all_reduce(t, "max") takes the largest', {"shift": ways.summed}),
)
USUAL: tuple[tuple[str, dict], ...] = (  # what shows with logits of any size
    (OWN_SHIFT, {"shift": ways.of_own}),
    (OWN_SHIFT, {"shift": lambda own: own.amax((1, 2), keepdim=True).expand_as(own)}),
    *(
        (f"a rank's tokens begin at rank · V / p; not at {where}", {"first": first, "mask": mask})
        for where, first in ways.FIRSTS.items()
        for mask in ("right", "clamped")
    ),
    *((ELSEWHERE, {"mask": mask}) for mask in ("clamped", "first", "modulo")),
    *(
        (WHOLE, {"shift": ways.of_own, "mask": mask, "total": ways.of_own, "target": ways.of_own})
        for mask in ("modulo", "clamped")
    ),
    (
        "a target below this rank's part gives a negative row: in Python one of the last, counted from the end",
        {"mask": "from the end"},
    ),
    ("targets below this rank's part are not left out: row < 0", {"mask": "below only"}),
    ("targets above this rank's part are not left out: row ≥ V / p", {"mask": "above only"}),
    ("the first row of each part is left out: row 0 is this rank's", {"mask": "not the first"}),
    ("the last row of each part is left out: row V / p − 1 is this rank's", {"mask": "not the last"}),
    ("row V / p is the next rank's", {"mask": "one more"}),
    ("row −1 is the rank's before", {"mask": "one before"}),
    ("the sum of exponentials is of this rank's part alone: add it up over the ranks", {"total": ways.of_own}),
    (f"{SUMS}; it is the largest of them", {"total": ways.largest}),
    (f"{SUMS}; it is the largest of them", {"total": ways.largest, "target": ways.largest}),
    (f"{SUMS}; it is their mean", {"total": ways.mean}),
    (f"{SUMS}; it is rank 0's", {"total": ways.of_first}),
)
OF_TARGET: tuple[tuple[str, dict], ...] = (  # in the loss alone
    ("one rank alone knows the target's logit: add it up over the ranks, 0 where it is not", {"target": ways.of_own}),
    (f"{TARGET}; it is the largest of them, which may be that 0", {"target": ways.largest}),
    (f"{TARGET}; it is the largest of them", {"target": ways.largest, "mask": "clamped"}),
    (f"{TARGET}; it is their mean", {"target": ways.mean}),
)
Made = tuple[tuple[str, Callable[[SimpleNamespace], Tensor]], ...]  # functions of right steps
RESULTS: Made = (  # of each rank
    (OWN_TOKENS, lambda s: (s.loss * s.mine).sum((1, 2)) / s.mine.sum((1, 2))),
    (
        "the ranks have different numbers of targets: a mean of their means is not the mean",
        lambda s: ways.mean((s.loss * s.mine).sum((1, 2)) / s.mine.sum((1, 2))),
    ),
    (MEAN, lambda s: s.loss),
    (MEAN, lambda s: s.loss.sum((1, 2))),
    *((MEAN, lambda s, d=d: s.loss.sum((1, 2)) / s.loss.shape[d]) for d in (1, 2)),
    *((MEAN, lambda s, d=d: s.loss.mean(d)) for d in (1, 2)),
    *((MEAN, lambda s, d=d: s.loss.sum(d)) for d in (1, 2)),
)
LOSSES: Made = (  # of each token on each rank, and their mean is taken
    (OWN_TOKENS, lambda s: s.loss * s.mine),
    ("all ranks have the same loss: nothing is to be divided by their number", lambda s: s.loss / s.ranks),
    ("all ranks have the same loss: nothing is to be added up over them", lambda s: s.loss * s.ranks),
    ("the sign is wrong: log of the sum minus the target's logit", lambda s: -s.loss),
    *((f"{NATS}, not log{n}", lambda s, n=n: s.loss / math.log(n)) for n in (2, 10)),
    *((f"{NATS}, not log{n}", lambda s, n=n: s.total.log() / math.log(n) - s.target) for n in (2, 10)),
    (OFTEN, lambda s: s.ranks * s.total.log() - s.target),
    (OFTEN, lambda s: s.ranks * (s.total.log() + s.largest) - s.target - s.largest),
    ("the logarithm of the sum is missing", lambda s: s.total - s.target),
    (NO_TARGET, lambda s: s.total.log()),
    (NO_TARGET, lambda s: s.total.log() + s.largest),
    *((BOTH, lambda s, sign=sign: s.loss + sign * s.largest) for sign in (-1, 1)),
    *((MORE, lambda s, n=n: (s.total + n).log() - s.target) for n in (1.0, 1e-3, 1e-4, 1e-5, 1e-6)),
    (
        "−inf stands for the target of another rank, and so the sum is −inf: what adds nothing is 0",
        lambda s: s.loss + math.inf,
    ),
)
PROBABILITIES: Made = (
    (NO_SHIFT, lambda s: s.loss * math.nan),  # inf / inf
    *(
        (TINY, lambda s, n=n: -(s.target.exp() / s.total + n).log())
        for n in (0, 1e-30, *(10**-n for n in range(5, 21)))
    ),
    *((TINY, lambda s, n=n: -(s.target.exp() / s.total).clamp(min=n).log()) for n in (1e-30, 1e-20, 1e-12, 1e-8)),
)
SQUEEZED = "squeeze() drops every dimension of 1, a batch or a length too: squeeze(-1), [..., 0]"
GRADIENTS: Made = (  # of the loss, the sum over the tokens divided by their number afterwards
    ("the −1 at the target is missing", lambda s: s.softmax),
    *((SQUEEZED, lambda s, d=d: s.gradient.squeeze(d)) for d in (1, 2)),
    ("the 1 at the target is to be subtracted", lambda s: s.softmax + s.one),
    ("the sign is wrong: softmax minus 1 at the target", lambda s: -s.gradient),
    (
        "the mask is for the 1 at the target alone; the softmax counts for all tokens",
        lambda s: s.gradient * s.mine[..., None],
    ),
    (PER_TOKEN, lambda s: s.gradient * s.count),
    (PER_TOKEN, lambda s: s.gradient / s.count),
    *((PER_TOKEN, lambda s, d=d: s.gradient * s.count / s.gradient.shape[d]) for d in (1, 2)),
    (PER_TOKEN, lambda s: s.gradient / s.gradient.shape[-1]),
    (PER_TOKEN, lambda s: s.gradient / s.gradient.shape[-1] / s.ranks),
    (PART, lambda s: s.softmax - s.count * s.one),
    (PART, lambda s: s.count * s.softmax - s.one),
    ("the exponentials are to be divided by their sum", lambda s: s.exponentials - s.one),
    (
        "the softmax divides by the sum of exponentials, not by its logarithm",
        lambda s: s.exponentials / s.total.log()[..., None] - s.one,
    ),
    *(
        (
            "the exponentials are of the logits after the shift, and so is the sum that divides them",
            lambda s, sign=sign: s.softmax * (sign * s.largest).exp()[..., None] - s.one,
        )
        for sign in (-1, 1)
    ),
    (OWN_PART, lambda s: ways.summed(s.gradient)),
    (OWN_PART, lambda s: ways.mean(s.gradient)),
    *((OWN_PART, lambda s, d=d: torch.stack([torch.cat([*s.gradient], d)] * s.ranks)) for d in range(3)),
    ("the number of ranks is no factor of the gradient; each has its own part of one", lambda s: s.ranks * s.gradient),
    ("the number of ranks is no factor of the gradient; each has its own part of one", lambda s: s.gradient / s.ranks),
)


def loss_causes(logits: list[Tensor], targets: Tensor, extreme: bool) -> Candidates:
    """Their answers: the loss on all ranks. extreme: only what shows with logits of ±10,000."""
    for sentence, settings in EXTREME if extreme else (*USUAL, *OF_TARGET):
        yield sentence, [*_of(logits, targets, settings).loss.mean((1, 2))]
        if settings.keys() != {"total"}:  # before the shift it is another number that is wrongly counted
            yield sentence, [*_of(logits, targets, settings | {"shifted": False}).loss.mean((1, 2))]
    right = _of(logits, targets, {})
    for sentence, function in PROBABILITIES if extreme else LOSSES:
        yield sentence, [*function(right).mean((1, 2))]
    for sentence, function in () if extreme else RESULTS:
        yield sentence, [*function(right)]


def gradient_causes(logits: list[Tensor], targets: Tensor, extreme: bool) -> Candidates:
    """Their answers: the gradient on all ranks, where the loss is right. extreme: as above."""
    for sentence, settings in EXTREME[:2] if extreme else USUAL:
        yield sentence, [*_of(logits, targets, settings).gradient / targets.numel()]
    for sentence, function in () if extreme else GRADIENTS:
        yield sentence, [*function(_of(logits, targets, {})) / targets.numel()]


def _of(logits: list[Tensor], targets: Tensor, settings: dict) -> SimpleNamespace:
    return steps(torch.stack(logits), targets, **settings)
