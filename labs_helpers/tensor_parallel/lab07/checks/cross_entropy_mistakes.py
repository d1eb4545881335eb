"""The losses and gradients that common mistakes give in exercise 10, on all ranks."""

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

NO_SHIFT = "exp overflows; first subtract each token's largest logit over all ranks"
TOO_MUCH = (
    "the number subtracted is far above all logits of a token, so every exp is 0; subtract the token's largest logit"
)
NOT_FINITE = "exp overflows or is 0 everywhere; do you subtract each token's largest logit over all ranks?"
OWN_SHIFT = (
    "each rank subtracts its own largest logit, so the sums do not add up; first find the largest over all ranks"
)
ELSEWHERE = (
    "a target of another rank has no row on this one; the row that you read in its place must not count (mask it to 0)"
)
WHOLE = "it treats this rank's part as the whole vocabulary"
SUMS = "add up the ranks' sums of exponentials"
TARGET = "add up the target's logit over the ranks, with 0 on the ranks that do not hold it"
MEAN = "the loss is the mean over the tokens of all sequences"
OWN_TOKENS = "it covers only tokens whose targets this rank holds; every rank needs the loss of every token"
NATS = "nats come from the natural logarithm, torch.log"
OFTEN = "all ranks already hold the same sum of exponentials; adding up its logarithm counts it p times"
NO_TARGET = "the target's logit is not subtracted"
BOTH = "the largest logit is subtracted only in the sum or only at the target; subtract it in both"
MORE = "it adds a number to the sum before taking its logarithm; the sum is at least 1 without it"
TINY = "float32 cannot represent such a small probability; compute log(sum) − logit instead"
PER_TOKEN = "the loss is a mean, so divide the gradient by the number of tokens, batch · length"
PART = "divide both the softmax and the 1 at the target by the number of tokens"
OWN_PART = "each rank returns the gradient of its own part of the vocabulary; do not exchange gradients"
ERRORS = (  # pairs (pattern, cause)
    (
        SIZES_DIFFER,
        "a (batch, length) tensor meets a (batch, length, V / p) one: add a dimension of 1 with [..., None] or "
        "keepdim=True; squeeze() without a dimension also drops a batch or a length of 1",
    ),
    (
        f"{INDEX_OUTSIDE}|smaller than num_classes|must be non-negative",
        "a target of another rank has no row in this rank's part; read any row for it (clamp), and mask the result",
    ),
    (
        r"Index tensor must have the same number",
        "gather and scatter need an index with as many dimensions as logits: row[..., None]",
    ),
    (INDEX_DTYPE, "a row index is an int64, like targets; dividing with / makes it a float"),
)
EXTREME: tuple[tuple[str, dict], ...] = (  # settings of `steps` that show only with logits of ±10,000
    (NO_SHIFT, {"shift": torch.zeros_like}),
    (TOO_MUCH, {"shift": lambda own: torch.full_like(own, float(own.max()))}),
    ('the ranks\' largest logits are added up; all_reduce(t, "max") takes their maximum', {"shift": ways.summed}),
)
USUAL: tuple[tuple[str, dict], ...] = (  # settings that show with logits of any size
    (OWN_SHIFT, {"shift": ways.of_own}),
    (OWN_SHIFT, {"shift": lambda own: own.amax((1, 2), keepdim=True).expand_as(own)}),
    *(
        (f"a rank's tokens start at rank · V / p, not at {where}", {"first": first, "mask": mask})
        for where, first in ways.FIRSTS.items()
        for mask in ("right", "clamped")
    ),
    *((ELSEWHERE, {"mask": mask}) for mask in ("clamped", "first", "modulo")),
    *(
        (WHOLE, {"shift": ways.of_own, "mask": mask, "total": ways.of_own, "target": ways.of_own})
        for mask in ("modulo", "clamped")
    ),
    (
        "a target below this rank's part gives a negative row, and Python counts it from the end",
        {"mask": "from the end"},
    ),
    ("targets below this rank's part (row < 0) are not masked", {"mask": "below only"}),
    ("targets above this rank's part (row ≥ V / p) are not masked", {"mask": "above only"}),
    ("the first row of each part is masked, but row 0 belongs to this rank", {"mask": "not the first"}),
    ("the last row of each part is masked, but row V / p − 1 belongs to this rank", {"mask": "not the last"}),
    ("row V / p is not masked, but it belongs to the next rank", {"mask": "one more"}),
    ("row −1 is not masked, but it belongs to the previous rank", {"mask": "one before"}),
    ("the sum of exponentials covers only this rank's part; add it up over the ranks", {"total": ways.of_own}),
    (f"{SUMS}; this takes their maximum", {"total": ways.largest}),
    (f"{SUMS}; this takes their maximum", {"total": ways.largest, "target": ways.largest}),
    (f"{SUMS}; this takes their mean", {"total": ways.mean}),
    (f"{SUMS}; this takes rank 0's", {"total": ways.of_first}),
)
OF_TARGET: tuple[tuple[str, dict], ...] = (  # settings that show only in the loss
    ("only one rank holds the target's logit; add it up over the ranks, with 0 on the others", {"target": ways.of_own}),
    (f"{TARGET}; this takes the maximum, which may be that 0", {"target": ways.largest}),
    (f"{TARGET}; this takes their maximum", {"target": ways.largest, "mask": "clamped"}),
    (f"{TARGET}; this takes their mean", {"target": ways.mean}),
)
Made = tuple[tuple[str, Callable[[SimpleNamespace], Tensor]], ...]  # functions of the right `steps`
RESULTS: Made = (  # each gives the ranks' results
    (OWN_TOKENS, lambda s: (s.loss * s.mine).sum((1, 2)) / s.mine.sum((1, 2))),
    (
        "the ranks hold different numbers of targets, so the mean of their means is not the mean",
        lambda s: ways.mean((s.loss * s.mine).sum((1, 2)) / s.mine.sum((1, 2))),
    ),
    (MEAN, lambda s: s.loss),
    (MEAN, lambda s: s.loss.sum((1, 2))),
    *((MEAN, lambda s, d=d: s.loss.sum((1, 2)) / s.loss.shape[d]) for d in (1, 2)),
    *((MEAN, lambda s, d=d: s.loss.mean(d)) for d in (1, 2)),
    *((MEAN, lambda s, d=d: s.loss.sum(d)) for d in (1, 2)),
)
LOSSES: Made = (  # each gives the loss per token on each rank, before the mean
    (OWN_TOKENS, lambda s: s.loss * s.mine),
    ("all ranks hold the same loss; do not divide it by their number", lambda s: s.loss / s.ranks),
    ("all ranks hold the same loss; do not add it up over them", lambda s: s.loss * s.ranks),
    ("the sign is wrong; the loss is the log of the sum minus the target's logit", lambda s: -s.loss),
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
        "a target of another rank contributes −inf, so the sum is −inf; it has to contribute 0",
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
SQUEEZED = "squeeze() drops every dimension of size 1, even batch or length; use squeeze(-1) or [..., 0]"
GRADIENTS: Made = (  # each gives the gradient of the summed loss; it is divided by the number of tokens afterwards
    ("the −1 at the target is missing", lambda s: s.softmax),
    *((SQUEEZED, lambda s, d=d: s.gradient.squeeze(d)) for d in (1, 2)),
    ("subtract the 1 at the target; this adds it", lambda s: s.softmax + s.one),
    ("the sign is wrong; the gradient is the softmax minus 1 at the target", lambda s: -s.gradient),
    (
        "mask only the 1 at the target; the softmax counts for all tokens",
        lambda s: s.gradient * s.mine[..., None],
    ),
    (PER_TOKEN, lambda s: s.gradient * s.count),
    (PER_TOKEN, lambda s: s.gradient / s.count),
    *((PER_TOKEN, lambda s, d=d: s.gradient * s.count / s.gradient.shape[d]) for d in (1, 2)),
    (PER_TOKEN, lambda s: s.gradient / s.gradient.shape[-1]),
    (PER_TOKEN, lambda s: s.gradient / s.gradient.shape[-1] / s.ranks),
    (PART, lambda s: s.softmax - s.count * s.one),
    (PART, lambda s: s.count * s.softmax - s.one),
    ("divide the exponentials by their sum", lambda s: s.exponentials - s.one),
    (
        "divide by the sum of exponentials, not by its logarithm",
        lambda s: s.exponentials / s.total.log()[..., None] - s.one,
    ),
    *(
        (
            "exponentials and their sum do not use the same shift; take both after subtracting the largest logit",
            lambda s, sign=sign: s.softmax * (sign * s.largest).exp()[..., None] - s.one,
        )
        for sign in (-1, 1)
    ),
    (OWN_PART, lambda s: ways.summed(s.gradient)),
    (OWN_PART, lambda s: ways.mean(s.gradient)),
    *((OWN_PART, lambda s, d=d: torch.stack([torch.cat([*s.gradient], d)] * s.ranks)) for d in range(3)),
    (
        "the gradient does not depend on the number of ranks; do not multiply or divide by it",
        lambda s: s.ranks * s.gradient,
    ),
    (
        "the gradient does not depend on the number of ranks; do not multiply or divide by it",
        lambda s: s.gradient / s.ranks,
    ),
)


def loss_causes(logits: list[Tensor], targets: Tensor, extreme: bool) -> Candidates:
    """Yield mistakes with their loss on all ranks. extreme: only those that show with logits of ±10,000."""
    for sentence, settings in EXTREME if extreme else (*USUAL, *OF_TARGET):
        yield sentence, [*_of(logits, targets, settings).loss.mean((1, 2))]
        if settings.keys() != {"total"}:  # before the shift the wrongly counted number differs
            yield sentence, [*_of(logits, targets, settings | {"shifted": False}).loss.mean((1, 2))]
    right = _of(logits, targets, {})
    for sentence, function in PROBABILITIES if extreme else LOSSES:
        yield sentence, [*function(right).mean((1, 2))]
    for sentence, function in () if extreme else RESULTS:
        yield sentence, [*function(right)]


def gradient_causes(logits: list[Tensor], targets: Tensor, extreme: bool) -> Candidates:
    """Yield mistakes with their gradient on all ranks, for a right loss. extreme: as above."""
    for sentence, settings in EXTREME[:2] if extreme else USUAL:
        yield sentence, [*_of(logits, targets, settings).gradient / targets.numel()]
    for sentence, function in () if extreme else GRADIENTS:
        yield sentence, [*function(_of(logits, targets, {})) / targets.numel()]


def _of(logits: list[Tensor], targets: Tensor, settings: dict) -> SimpleNamespace:
    return steps(torch.stack(logits), targets, **settings)
