"""Products with a wrong operand, such as K for V or dO for Q, and rows masked at another tensor's length."""

import torch

from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass


def operand_causes(e: BackwardPass, name: str):
    """Yield (sentence, the wrong pass)."""
    if name == "dv":
        for letter, x in (("Q", e.q), ("O", e.o)):
            yield f"P is multiplied by {letter}; dV is Pᵀ·dO", e.but(dv=e.p.mT @ x)
    else:
        for text, dp in (
            ("dO·Kᵀ", e.do @ e.k.mT),
            ("Q·Vᵀ", e.q @ e.v.mT),
            ("Q·Kᵀ", e.q @ e.k.mT),
            ("O·Vᵀ", e.o @ e.v.mT),
        ):
            yield f"dP is computed as {text}; it is dO·Vᵀ", e.but(dp=dp)
    if name == "dq":
        yield "dS is multiplied by V; dQ is scale · dS·K", e.but(dq=e.scale * e.ds @ e.v)
    if name == "dk":
        yield "dS is multiplied by dO; dK is scale · dSᵀ·Q", e.but(dk=e.scale * e.ds.mT @ e.do)
    if e.BLOCK_M == e.BLOCK_N and not (
        e.Lq % e.BLOCK_M or e.Lk % e.BLOCK_M
    ):  # with other sizes the shapes do not match
        own = (("Q", e.q), ("dO", e.do)) if name == "dq" else (("K", e.k), ("V", e.v))
        for letter, x in own if name != "dv" else ():
            formula = "dQ is scale · dS·K" if name == "dq" else "dK is scale · dSᵀ·Q"
            yield f"dS is multiplied by {letter}; {formula}", e.but(**{name: e.scale * _with_own_tile(e, name, x)})
    for text, scores in (("Q·Vᵀ", e.q @ e.v.mT), ("dO·Kᵀ", e.do @ e.k.mT), ("dO·Vᵀ", e.do @ e.v.mT)):
        yield f"the scores are computed as {text}; they are Q·Kᵀ", e.but(s=e.capped(e.scale * scores), slope=e.slope)
    yield "K and V are swapped", e.but(k=e.v, v=e.k)
    yield from wrong_ends(e, name)


def _with_own_tile(e: BackwardPass, name: str, x: torch.Tensor) -> torch.Tensor:
    """Return dS or dSᵀ times x, where every step uses the rows of x in the program's own tile."""
    ds = e.ds if name == "dq" else e.ds.mT
    width, rows = e.BLOCK_M, x.unflatten(-2, (-1, e.BLOCK_M))
    folded = ds.unflatten(-1, (-1, width)).sum(-2)  # (…, rows, width): the factors of row i of the program's tile
    return (folded.unflatten(-2, (-1, width)) @ rows).flatten(-3, -2)


def wrong_ends(e: BackwardPass, name: str):
    """Yield masks that end at the other side's length."""
    if name == "dq" and e.Lq < e.Lk:
        yield "keys are masked at Lq; mask them at Lk", e.but(seen=e.seen & (torch.arange(e.Lk) < e.Lq))
    if name != "dq" and e.Lk < e.Lq:
        yield "queries are masked at Lk; mask them at Lq", e.but(seen=e.seen & (torch.arange(e.Lq)[:, None] < e.Lk))
