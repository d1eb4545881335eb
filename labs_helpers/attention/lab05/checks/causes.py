"""What common mistakes in a backward pass give, so that a check can name the one that was made."""

import math
from itertools import chain

from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass
from labs_helpers.attention.lab05.checks.mask_causes import mask_causes
from labs_helpers.attention.lab05.checks.nan_causes import nan_causes
from labs_helpers.attention.lab05.checks.place_causes import place_causes
from labs_helpers.course.verdict import Candidates

DS = "dS = P ∘ (dP − delta)"
LOG2E = math.log2(math.e)


def gradient_causes(e: BackwardPass, name: str, kernel=None) -> Candidates:
    """Yields (sentence, the value of `name`, 'dq', 'dk' or 'dv', that it leads to). kernel: of the launch."""
    formula = dv_causes(e) if name == "dv" else ds_causes(e, NAMES[name])
    others = place_causes(e, name), mask_causes(e, name), nan_causes(e, name, kernel)
    for sentence, other in chain(formula, exponent_causes(e), *others):
        yield sentence, getattr(other, name)


def dv_causes(e: BackwardPass):
    yield "dV is made of dS; it is Pᵀ·dO", e.but(p=e.ds)
    yield "dV is made of dP; it is Pᵀ·dO", e.but(p=e.dp)
    yield "dV takes no scale: V meets P, not the scores", e.but(dv=e.scale * e.dv)


def ds_causes(e: BackwardPass, gradient: str):
    yield f"delta is left out: {DS}", e.but(delta=0 * e.delta)
    yield "delta is added where it is subtracted", e.but(delta=-e.delta)
    yield f"delta is subtracted after the product with P: {DS}", e.but(ds=e.p * e.dp - e.delta * e.seen)
    yield f"the scale is missing: the scores are scale · Q·Kᵀ, so {gradient} takes it too", e.but(s=e.s, scale=1.0)
    yield f"the scale is applied twice to {gradient}", e.but(s=e.s, scale=e.scale**2)
    yield f"the sign is turned: {DS}", e.but(ds=-e.ds)
    yield f"{gradient} is made of P; it is made of dS", e.but(ds=e.p)
    yield f"{gradient} is made of dP; it is made of {DS}", e.but(ds=e.dp)
    yield f"P is missing in {DS}", e.but(ds=e.dp - e.delta)
    if e.cap is not None:
        capped, slope = "s' = cap · tanh(s / cap)", "ds'/ds = 1 − tanh²(s / cap)"
        yield f"the derivative of the tanh is missing: {slope}", e.but(slope=1.0)
        yield f"{slope}, no 1/cap left: {capped} has slope 1 at 0", e.but(slope=e.slope / e.cap)
        yield "the derivative is taken of s', not of tanh: 1 − (s'/cap)²", e.but(slope=1 - e.s**2)
        yield f"the cap is missing in the scores: P = exp(s' − lse), {capped}", e.but(cap=None, slope=e.slope)


def exponent_causes(e: BackwardPass):
    for sentence, of_s, of_lse in (
        ("the log-sum-exp is taken as base 2; it is natural: exp2((s − lse) · log2(e))", 1.0, 1 / LOG2E),
        ("log2(e) is missing at the scores: exp2((s − lse) · log2(e))", 1 / LOG2E, 1.0),
        ("exp2 without log2(e): exp(x) = exp2(x · log2(e))", 1 / LOG2E, 1 / LOG2E),
        ("log2(e) is there twice: exp takes none", LOG2E, LOG2E),
        ("P is not normalised: lse is missing", 1.0, 0.0),
        ("the scale is missing in the scores", 1 / e.scale, 1.0),
        ("the scale is applied twice in the scores", e.scale, 1.0),
    ):
        yield sentence, e.but(s=of_s * e.s, lse=of_lse * e.lse, slope=e.slope)
