"""What the wrong operand of a product gives: K for V, dO for Q, and rows that end where another tensor's do."""

import torch

from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass


def operand_causes(e: BackwardPass, name: str):
    """Yields (sentence, the pass that it leads to)."""
    if name == "dv":
        for letter, x in (("Q", e.q), ("O", e.o)):
            yield f"dV is Pᵀ·dO; here P meets {letter}", e.but(dv=e.p.mT @ x)
    else:
        for text, dp in (
            ("dO·Kᵀ", e.do @ e.k.mT),
            ("Q·Vᵀ", e.q @ e.v.mT),
            ("Q·Kᵀ", e.q @ e.k.mT),
            ("O·Vᵀ", e.o @ e.v.mT),
        ):
            yield f"dP is dO·Vᵀ; here it is {text}", e.but(dp=dp)
    if name == "dq":
        yield "dQ is scale · dS·K; here dS meets V", e.but(dq=e.scale * e.ds @ e.v)
    if name == "dk":
        yield "dK is scale · dSᵀ·Q; here dS meets dO", e.but(dk=e.scale * e.ds.mT @ e.do)
    if e.BLOCK_M == e.BLOCK_N and not (e.Lq % e.BLOCK_M or e.Lk % e.BLOCK_M):  # elsewhere the tiles do not fit
        own = (("Q", e.q), ("dO", e.do)) if name == "dq" else (("K", e.k), ("V", e.v))
        for letter, x in own if name != "dv" else ():
            formula = "dQ is scale · dS·K" if name == "dq" else "dK is scale · dSᵀ·Q"
            yield f"{formula}; here dS meets {letter}", e.but(**{name: e.scale * _with_own_tile(e, name, x)})
    for text, scores in (("Q·Vᵀ", e.q @ e.v.mT), ("dO·Kᵀ", e.do @ e.k.mT), ("dO·Vᵀ", e.do @ e.v.mT)):
        yield f"the scores are Q·Kᵀ; here they are {text}", e.but(s=e.capped(e.scale * scores), slope=e.slope)
    yield "K and V are exchanged", e.but(k=e.v, v=e.k)
    yield from wrong_ends(e, name)


def _with_own_tile(e: BackwardPass, name: str, x: torch.Tensor) -> torch.Tensor:
    """dS, or dSᵀ, times x, of which a program takes the rows of its own tile in every step."""
    ds = e.ds if name == "dq" else e.ds.mT
    width, rows = e.BLOCK_M, x.unflatten(-2, (-1, e.BLOCK_M))
    folded = ds.unflatten(-1, (-1, width)).sum(-2)  # (…, rows, width): what meets row i of the program's tile
    return (folded.unflatten(-2, (-1, width)) @ rows).flatten(-3, -2)


def wrong_ends(e: BackwardPass, name: str):
    """Rows that are masked where those of the other side end."""
    if name == "dq" and e.Lq < e.Lk:
        yield "keys are masked at Lq; they end at Lk", e.but(seen=e.seen & (torch.arange(e.Lk) < e.Lq))
    if name != "dq" and e.Lk < e.Lq:
        yield "queries are masked at Lk; they end at Lq", e.but(seen=e.seen & (torch.arange(e.Lq)[:, None] < e.Lk))
