"""What common mistakes in a backward pass give, so that a check can name the one that was made."""

from __future__ import annotations

import math

import torch

from labs_helpers.attention.lab05.checks.exact import Exact
from labs_helpers.attention.lab05.checks.place_causes import misplaced
from labs_helpers.attention.lab05.checks.walk_causes import walk_suspects

LOG2E = math.log2(math.e)


def suspects(e: Exact, name: str, BLOCK_M: int = 64, BLOCK_N: int = 64, bare=()) -> dict[str, torch.Tensor]:
    """text of a cause → the value of `name` ('dq', 'dk' or 'dv') that it leads to. Blocks: of the launch.
    bare: what the kernel loads without other=0.0."""
    return {
        **_of_the_formula(e, name),
        **_of_turned_tiles(e, name, BLOCK_M, BLOCK_N),
        **walk_suspects(e, name, BLOCK_M, BLOCK_N, bare),
        **_of_the_exponent(e, name),
        **misplaced(e, name, BLOCK_M, BLOCK_N),
    }


def _of_the_formula(e: Exact, name: str) -> dict:
    if name == "dv":
        return {
            "dV is made of dS; it is Pᵀ·dO": e.ds.mT @ e.do,
            "dV takes no scale: V meets P, not the scores": e.scale * e.dv,
            "dV is made of dP; it is Pᵀ·dO": e.dp.mT @ e.do,
        }
    n = name[0] + name[1].upper()
    centred = e.dp - e.delta[..., None]
    texts = {
        "delta is left out: dS = P ∘ (dP − delta)": e.gradient(name, e.p, e.p * e.dp * e.slope),
        f"the scale is missing: the scores are scale · Q·Kᵀ, so {n} takes it too": e.gradient(name, e.p, scale=1),
        f"the scale is applied twice to {n}": e.gradient(name, e.p, scale=e.scale**2),
        "delta is added where it is subtracted": e.gradient(name, e.p, e.p * (e.dp + e.delta[..., None]) * e.slope),
        "delta is subtracted after the product with P: dS = P ∘ (dP − delta)": e.gradient(
            name, e.p, e.p * e.dp - e.delta[..., None] * e.seen
        ),
        "the sign is turned: dS = P ∘ (dP − delta)": -getattr(e, name),
        f"{n} is made of P; it is made of dS": e.gradient(name, e.p, e.p),
        f"{n} is made of dP; it is made of dS = P ∘ (dP − delta)": e.gradient(name, e.p, e.dp),
        "P is missing in dS = P ∘ (dP − delta)": e.gradient(name, e.p, centred),
    }
    if e.cap is not None:
        texts |= {
            "the derivative of the tanh is missing: ds'/ds = 1 − tanh²(s / cap)": e.gradient(name, e.p, e.p * centred),
            "ds'/ds is 1 − tanh²(s / cap), no 1/cap left: s' = cap · tanh(s / cap) has slope 1 at 0": e.gradient(
                name, e.p, e.ds / e.cap
            ),
            "the derivative is taken of s', not of tanh: 1 − (s'/cap)²": e.gradient(
                name, e.p, e.p * centred * (1 - e.s**2)
            ),
            "the cap is missing in the scores: P = exp(s' − lse), s' = cap · tanh(s / cap)": e.gradient(
                name, e.p_of(e.raw, e.seen)
            ),
        }
    return texts


def _of_turned_tiles(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    """Each tile of P or dS turned where it should not be, or left where it should; a small matrix is one tile."""
    Lq, Lk = e.seen.shape
    BLOCK_M, BLOCK_N = min(BLOCK_M, Lq), min(BLOCK_N, Lk)
    if BLOCK_M != BLOCK_N or Lq % BLOCK_M or Lk % BLOCK_N:
        return {}

    def turned(x):
        return x.unflatten(-1, (-1, BLOCK_N)).unflatten(-3, (-1, BLOCK_M)).transpose(-3, -1).flatten(-4, -3).flatten(-2)

    if name == "dv":
        return {"P is not transposed: dV = Pᵀ·dO, a row of it for each key": turned(e.p).mT @ e.do}
    text = "dS is transposed: dQ = scale · dS·K" if name == "dq" else "dS is not transposed: dK = scale · dSᵀ·Q"
    return {text: e.gradient(name, e.p, turned(e.ds))}


def _of_the_exponent(e: Exact, name: str) -> dict:
    def p(exponent):
        return torch.exp(exponent).masked_fill(~e.seen, 0.0)

    lse = e.lse[..., None]
    texts = {
        "the log-sum-exp is taken as base 2; it is natural: exp2((s − lse) · log2(e))": p(e.s - lse / LOG2E),
        "exp2 without log2(e): exp(x) = exp2(x · log2(e))": p((e.s - lse) / LOG2E),
        "log2(e) is missing at the scores: exp2((s − lse) · log2(e))": p(e.s / LOG2E - lse),
        "P is not normalised: lse is missing": p(e.s),
        "the scale is missing in the scores": p(e.s / e.scale - lse),
        "the scale is applied twice in the scores": p(e.s * e.scale - lse),
        "log2(e) is there twice: exp takes none": p((e.s - lse) * LOG2E),
    }
    return {text: e.gradient(name, value) for text, value in texts.items()}
