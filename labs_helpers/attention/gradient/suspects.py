"""What common mistakes in a backward pass give, so that a check can name the one that was made."""

from __future__ import annotations

import math

import torch

from labs_helpers.attention.gradient.exact import Exact

LOG2E = math.log2(math.e)


def suspects(e: Exact, name: str, BLOCK_M: int = 64, BLOCK_N: int = 64) -> dict[str, torch.Tensor]:
    """text of a cause → the value of `name` ('dq', 'dk' or 'dv') that it leads to. Blocks: of the launch."""
    return {**_of_the_formula(e, name), **_of_turned_tiles(e, name, BLOCK_M, BLOCK_N),
            **_of_the_mask(e, name, BLOCK_M, BLOCK_N), **_of_the_exponent(e, name)}


def _gradient(e: Exact, name: str, p, ds=None, scale=None):
    """dq, dk or dv from another P; dS follows from it unless given."""
    if name == "dv":
        return p.mT @ e.do
    ds = p * (e.dp - e.delta[..., None]) * e.slope if ds is None else ds
    scale = e.scale if scale is None else scale
    return scale * (ds @ e.k if name == "dq" else ds.mT @ e.q)


def _of_the_formula(e: Exact, name: str) -> dict:
    if name == "dv":
        return {"dV is made of dS; it is Pᵀ·dO": e.ds.mT @ e.do,
                "dV takes no scale: V meets P, not the scores": e.scale * e.dv,
                "dV is made of dP; it is Pᵀ·dO": e.dp.mT @ e.do}
    n = name[0] + name[1].upper()
    centred = e.dp - e.delta[..., None]
    texts = {
        "delta is left out: dS = P ∘ (dP − delta)": _gradient(e, name, e.p, e.p * e.dp * e.slope),
        f"the scale is missing: the scores are scale · Q·Kᵀ, so {n} takes it too": _gradient(e, name, e.p, scale=1),
        f"the scale is applied twice to {n}": _gradient(e, name, e.p, scale=e.scale**2),
        "delta is added where it is subtracted": _gradient(
            e, name, e.p, e.p * (e.dp + e.delta[..., None]) * e.slope),
        "delta is subtracted after the product with P: dS = P ∘ (dP − delta)":
            _gradient(e, name, e.p, e.p * e.dp - e.delta[..., None] * e.seen),
        "the sign is turned: dS = P ∘ (dP − delta)": -getattr(e, name),
        f"{n} is made of P; it is made of dS": _gradient(e, name, e.p, e.p),
        f"{n} is made of dP; it is made of dS = P ∘ (dP − delta)": _gradient(e, name, e.p, e.dp),
        "P is missing in dS = P ∘ (dP − delta)": _gradient(e, name, e.p, centred),
    }
    if e.cap is not None:
        texts |= {
            "the derivative of the tanh is missing: ds/dx = 1 − tanh²(x / cap)":
                _gradient(e, name, e.p, e.p * centred),
            "the derivative is 1 − tanh²(x / cap), no 1/cap left: cap · tanh(x / cap) has slope 1 at 0":
                _gradient(e, name, e.p, e.ds / e.cap),
            "the derivative is taken of s', not of tanh: 1 − (s'/cap)²": _gradient(
                e, name, e.p, e.p * centred * (1 - e.s**2)),
            "the cap is missing in the scores: P = exp(cap · tanh(s / cap) − lse)":
                _gradient(e, name, e.p_of(e.raw, e.seen)),
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
    return {text: _gradient(e, name, e.p, turned(e.ds))}


def _of_the_mask(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    Lq, Lk = e.seen.shape
    blind = e.lse.isinf()
    texts = {}
    if bool(blind.any()):
        lost = getattr(e, name).clone()
        lost[(blind[..., None].expand(lost.shape) if name == "dq" else torch.ones_like(lost, dtype=torch.bool))] = (
            math.nan)
        nowhere = getattr(e, name).clone()
        tiles = blind.any(-1)
        if name != "dq" and bool(tiles.any()):  # key tiles whose first query tile holds a blind query
            first_query = torch.arange(Lk) // BLOCK_N * BLOCK_N - (Lk - Lq)
            held = first_query.clamp(min=0) // BLOCK_M * BLOCK_M < Lq - Lk
            nowhere[:, :, held] = math.nan
        else:  # queries that see no key, in a tile whose last query sees one
            last = torch.arange(Lq) // BLOCK_M * BLOCK_M + BLOCK_M - 1
            nowhere[:, :, (last + Lk - Lq >= 0) & blind[0, 0]] = math.nan
        text = "a query that sees no key has lse = −inf, and exp(−inf + inf) is NaN: set P itself to 0 (tl.where)"
        texts |= {text: nowhere, text + ".": lost}
    if Lk % BLOCK_N and name == "dq":
        texts["keys past the end are not masked: k is 0 there, so P is exp(−lse), here infinite"] = torch.full(
            e.dq.shape, math.nan, dtype=torch.float64)
    if Lk % BLOCK_N:
        whole = e.seen.clone()
        whole[:, Lk // BLOCK_N * BLOCK_N:] = False
        texts["the last, partial tile of keys is skipped"] = _gradient(e, name, e.p_of(e.s, whole))
    if Lq % BLOCK_M:
        whole = e.seen.clone()
        whole[Lq // BLOCK_M * BLOCK_M:] = False
        texts["the last, partial tile of queries is skipped"] = _gradient(e, name, e.p_of(e.s, whole))
        if name != "dq":
            texts["queries past the end are not masked: set their P to 0"] = torch.full(
                e.dk.shape, math.nan, dtype=torch.float64)
    texts |= _of_the_loop(e, name, BLOCK_M, BLOCK_N)
    if not e.causal:
        return texts
    rows, columns = torch.arange(Lq)[:, None], torch.arange(Lk)[None, :]
    whole_tiles = columns // BLOCK_N * BLOCK_N + BLOCK_N - 1 <= rows // BLOCK_M * BLOCK_M + Lk - Lq
    computed = columns // BLOCK_N * BLOCK_N <= rows // BLOCK_M * BLOCK_M + BLOCK_M - 1 + Lk - Lq
    below = columns < rows // BLOCK_M * BLOCK_M + Lk - Lq
    return {
        "the diagonal is off by one: query i does see key i + Lk − Lq": _gradient(
            e, name, e.p_of(e.s, e.seen_to(Lk - Lq - 1))),
        "the diagonal is off by one: query i does not see key i + Lk − Lq + 1": _gradient(
            e, name, e.p_of(e.s, e.seen_to(Lk - Lq + 1) & computed)),
        "the causal mask is missing when P is computed again": _gradient(e, name, e.p_of(e.s, e.seen_to(Lk))),
        "the causal mask is missing on the diagonal's tiles": _gradient(e, name, e.p_of(e.s, computed)),
        "the diagonal starts from the top left corner: query i sees the keys j ≤ i + Lk − Lq": _gradient(
            e, name, e.p_of(e.s, e.seen_to(0))),
        "the causal mask is turned: query i sees the keys j ≤ i + Lk − Lq": _gradient(
            e, name, e.p_of(e.s, columns >= rows + Lk - Lq)),
        "the tiles on the diagonal are skipped; a part of them is seen": _gradient(
            e, name, e.p_of(e.s, e.seen & whole_tiles)),
        "the loop ends before the diagonal: the tile's last query sees more keys than its first": _gradient(
            e, name, e.p_of(e.s, e.seen & below)),
        **texts,
    }


def _of_the_loop(e: Exact, name: str, BLOCK_M: int, BLOCK_N: int) -> dict:
    """Accumulators that keep one tile alone."""
    Lq, Lk = e.seen.shape
    rows, columns = torch.arange(Lq)[:, None], torch.arange(Lk)[None, :]
    if name != "dq":
        only = (rows >= (Lq - 1) // BLOCK_M * BLOCK_M).expand(Lq, Lk)
        return {f"only the last tile of queries is left: {name[0]}{name[1].upper()} has to be added up":
                _gradient(e, name, e.p_of(e.s, e.seen & only))}
    ends = (rows // BLOCK_M * BLOCK_M + BLOCK_M + Lk - Lq).clamp(0, Lk) if e.causal else torch.full_like(rows, Lk)
    only = columns >= (ends - 1).clamp(min=0) // BLOCK_N * BLOCK_N
    return {"only the last tile of keys is left: dQ has to be added up": _gradient(
        e, name, e.p_of(e.s, e.seen & only))}


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
    return {text: _gradient(e, name, value) for text, value in texts.items()}
