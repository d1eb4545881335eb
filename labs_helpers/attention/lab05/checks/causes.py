"""Common mistakes in a backward pass and their gradients, so that a check can name a mistake."""

import math
from itertools import chain

import torch

from labs_helpers.attention.lab04.checks.steps import score_roundings
from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass
from labs_helpers.attention.lab05.checks.mask_causes import mask_causes
from labs_helpers.attention.lab05.checks.nan_causes import nan_causes
from labs_helpers.attention.lab05.checks.operand_causes import operand_causes
from labs_helpers.attention.lab05.checks.place_causes import place_causes
from labs_helpers.attention.lab05.checks.step_causes import step_causes
from labs_helpers.course.verdict import Candidates

DS = "dS = P ∘ (dP − delta)"
DELTA = "rowsum(O ∘ dO) = rowsum(P ∘ dP)"
LOG2E = math.log2(math.e)


def gradient_causes(e: BackwardPass, name: str, kernel=None) -> Candidates:
    """Yield (sentence, the wrong value of `name`, 'dq', 'dk' or 'dv'). kernel: the launched kernel, if any."""
    formula = dv_causes(e) if name == "dv" else ds_causes(e, NAMES[name])
    others = operand_causes(e, name), place_causes(e, name), mask_causes(e, name), nan_causes(e, name, kernel)
    for sentence, other in chain(formula, exponent_causes(e), *others):
        yield sentence, getattr(other, name)
    if kernel is not None:
        yield from step_causes(e, name)


def in_16_bits(e: BackwardPass, sentence: str, **values):
    """Yield the pass with rounded values, and the right pass, because in float32 the same rounding changes nothing."""
    yield sentence, e.but(**values)
    yield sentence, e


def dv_causes(e: BackwardPass):
    yield "dV is computed from dS; it is Pᵀ·dO", e.but(p=e.ds)
    yield "dV is computed from dP; it is Pᵀ·dO", e.but(p=e.dp)
    yield "dV is computed from the scores; it is Pᵀ·dO", e.but(p=e.s.masked_fill(~e.seen, 0.0))
    yield "dV takes no scale: V is multiplied by P, not by the scores", e.but(dv=e.scale * e.dv)
    if e.cap is not None:
        yield "dV takes no derivative of the tanh: it is Pᵀ·dO", e.but(p=e.p * e.slope)


def ds_causes(e: BackwardPass, gradient: str):
    yield f"delta is left out: {DS}", e.but(delta=0 * e.delta)
    yield "delta is added; subtract it", e.but(delta=-e.delta)
    yield f"delta is subtracted after the product with P: {DS}", e.but(ds=e.p * e.dp - e.delta * e.seen)
    yield f"delta is the mean over the row; it is the sum, {DELTA}", e.but(delta=e.delta / e.q.shape[-1])
    yield f"delta is the mean over the row; it is the sum, {DELTA}", e.but(delta=e.delta / e.Lk)
    sums = e.dp.masked_fill(~e.seen, 0.0).sum(-1, keepdim=True)
    yield f"delta omits P: it is {DELTA}", e.but(delta=sums)
    yield f"delta omits P: it is {DELTA}", e.but(delta=sums / e.Lk)
    yield "delta is summed over each column; sum over each row", e.but(delta=(e.p * e.dp).sum(-2, keepdim=True))
    for axes in ((-2, -1), (0, 1, 2, 3)):
        yield "delta is summed over all rows; each row has its own delta", e.but(delta=e.delta.sum(axes, keepdim=True))
    for of, x in (("P", e.p), ("O", e.o), ("dO", e.do)):
        yield f"delta is {DELTA}; here it is rowsum({of})", e.but(delta=x.sum(-1, keepdim=True))
    yield (
        f"P ∘ (1 − P) would be the derivative of an element-wise function; for the softmax, {DS}",
        e.but(ds=e.p * (1 - e.p) * e.dp),
    )
    yield f"delta takes no scale: {DS}", e.but(delta=e.scale * e.delta)
    yield f"lse is used instead of delta: {DS}", e.but(delta=e.lse)
    yield f"P is used instead of dP: {DS}", e.but(dp=e.p)
    yield f"P and dP are added; multiply them: {DS}", e.but(ds=(e.p + e.dp - e.delta) * e.seen)
    of_two, dp, delta = (
        "the difference of two rounded numbers is inaccurate",
        e.dp.half().double(),
        e.delta.half().double(),
    )
    yield from in_16_bits(e, f"dP is rounded to 16 bits before you subtract delta; {of_two}", dp=dp)
    yield from in_16_bits(e, f"delta is rounded to 16 bits; {of_two}", delta=delta)
    both = f"dP and delta are rounded to 16 bits before you subtract them; {of_two}"
    yield from in_16_bits(e, both, dp=dp, delta=delta)
    yield (
        f"the scale is missing: the scores are scale · Q·Kᵀ, so multiply {gradient} by it, too",
        e.but(s=e.s, scale=1.0),
    )
    yield f"the scale is applied twice to {gradient}", e.but(s=e.s, scale=e.scale**2)
    yield f"{gradient} is divided by the scale; multiply it", e.but(s=e.s, scale=1 / e.scale)
    yield f"the sign is wrong: {DS}", e.but(ds=-e.ds)
    yield f"{gradient} is computed from P; compute it from dS", e.but(ds=e.p)
    yield f"{gradient} is computed from dP; compute it from {DS}", e.but(ds=e.dp)
    yield f"dS omits P: {DS}", e.but(ds=e.dp - e.delta)
    yield f"dS contains P twice: {DS}", e.but(ds=e.p * e.ds)
    if e.cap is not None:
        yield from cap_causes(e)


def cap_causes(e: BackwardPass):
    capped, slope = "s' = cap · tanh(s / cap)", "ds'/ds = 1 − tanh²(s / cap)"
    x, bent = e.raw / e.cap, torch.tanh(e.raw / e.cap)
    yield f"the derivative of the tanh is missing: {slope}", e.but(slope=1.0)
    yield f"{slope} has no factor 1/cap: {capped} has slope 1 at 0", e.but(slope=e.slope / e.cap)
    yield f"the derivative has an extra factor of cap, which cancels with 1/cap: {slope}", e.but(slope=e.slope * e.cap)
    yield "the derivative uses s' instead of tanh: 1 − (s'/cap)²", e.but(slope=1 - e.s**2)
    yield f"the square is missing: {slope}", e.but(slope=1 - bent)
    yield f"the derivative is (1 − tanh)²; it should be 1 − tanh²: {slope}", e.but(slope=(1 - bent) ** 2)
    yield f"the sign is wrong: {slope}", e.but(slope=1 + bent**2)
    yield f"the 1 is missing: {slope}", e.but(slope=bent**2)
    yield f"the derivative uses s instead of tanh: {slope}", e.but(slope=1 - x**2)
    yield (
        f"this is the derivative of the sigmoid, σ·(1 − σ): {slope}",
        e.but(slope=torch.sigmoid(2 * x) * torch.sigmoid(-2 * x)),
    )
    yield f"the cap is missing in the scores: P = exp(s' − lse), {capped}", e.but(cap=None, slope=e.slope)
    for sentence, tanh in (
        ("tanh(x) = 2 · sigmoid(2x) − 1: the −1 is missing", 2 * torch.sigmoid(2 * x)),
        ("tanh(x) = 2 · sigmoid(2x) − 1: the 2 in the sigmoid is missing", 2 * torch.sigmoid(x) - 1),
        ("tanh(x) = 2 · sigmoid(2x) − 1: the 2 before the sigmoid is missing", torch.sigmoid(2 * x) - 1),
        ("the scores are not divided by cap: s' = cap · tanh(s / cap)", torch.tanh(e.raw)),
        ("the scores are multiplied by cap: s' = cap · tanh(s / cap)", torch.tanh(e.raw * e.cap)),
        ("the scale is missing in the scores", torch.tanh(x / e.scale)),
        ("the scale is applied twice in the scores", torch.tanh(x * e.scale)),
        ("exp of a large x overflows: tanh(x) = 2 · sigmoid(2x) − 1", bent.masked_fill(x > 44.3614, math.nan)),
    ):
        yield sentence, e.but(s=e.cap * tanh, slope=1 - tanh**2)
    yield f"tanh is not multiplied by cap: {capped}", e.but(s=bent, slope=e.slope)
    yield f"tanh is not multiplied by cap: {capped}", e.but(s=bent, slope=e.slope / e.cap)


def exponent_causes(e: BackwardPass):
    for sentence, of_s, of_lse in (
        ("lse is a natural logarithm, but the code treats it as base 2: exp2((s − lse) · log2(e))", 1.0, 1 / LOG2E),
        ("the scores are not multiplied by log2(e): exp2((s − lse) · log2(e))", 1 / LOG2E, 1.0),
        ("exp2 is used without log2(e): exp(x) = exp2(x · log2(e))", 1 / LOG2E, 1 / LOG2E),
        ("log2(e) is applied twice; exp needs no log2(e)", LOG2E, LOG2E),
        ("only the scores are multiplied by log2(e); with exp2, multiply lse by it, too", LOG2E, 1.0),
        ("lse is added; subtract it: P = exp(s − lse)", 1.0, -1.0),
        ("lse is divided by log2(e); multiply it", 1.0, 1 / LOG2E**2),
        ("P is not normalized: lse is missing", 1.0, 0.0),
        ("the scale is missing in the scores", 1 / e.scale, 1.0),
        ("the scale is applied twice in the scores", e.scale, 1.0),
        ("the scores are divided by the scale; multiply them", 1 / e.scale**2, 1.0),
        ("scores and lse are divided by log2(e); for exp2, multiply them", 1 / LOG2E**2, 1 / LOG2E**2),
    ):
        yield sentence, e.but(s=of_s * e.s, lse=of_lse * e.lse, slope=e.slope)
    default = e.q.shape[-1] ** -0.5 / e.scale
    sentence = "the default 1/√D is used instead of scale"
    yield f"{sentence} in the scores", e.but(s=default * e.s, slope=e.slope)
    yield f"{sentence}", e.but(s=default * e.s, scale=default * e.scale, slope=e.slope)
    yield "P is s − lse; it should be exp(s − lse)", e.but(p=(e.s - e.lse).masked_fill(~e.seen, 0.0))
    yield (
        "the softmax sums over the queries; sum over the keys",
        e.but(p=e.s.masked_fill(~e.seen, -math.inf).softmax(-2).nan_to_num()),
    )
    yield (
        "exp(s) is divided by lse; P is exp(s − lse)",
        e.but(p=(torch.exp(e.s) / e.lse).masked_fill(~e.seen, 0.0)),
    )
    for rounded in score_roundings(e.scale):
        yield from in_16_bits(
            e, "the scores are rounded to 16 bits; keep them in float32", s=rounded(e.s), slope=e.slope
        )
    lse = e.lse.half().double()
    yield from in_16_bits(e, "lse is rounded to 16 bits; keep it in float32", lse=lse, slope=e.slope)
    outside = e.walked(e.corner) & ~e.seen
    yield "P is 1 for unseen keys; it has to be 0", e.but(p=e.p.masked_fill(outside, 1.0))
