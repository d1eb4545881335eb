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
        if e.Lq == e.Lk:
            for letter, x in (("Q", e.q), ("dO", e.do)):
                yield f"dQ is scale · dS·K; here dS meets {letter}", e.but(dq=e.scale * e.ds @ x)
    if name == "dk":
        yield "dK is scale · dSᵀ·Q; here dS meets dO", e.but(dk=e.scale * e.ds.mT @ e.do)
        if e.Lq == e.Lk:
            for letter, x in (("K", e.k), ("V", e.v)):
                yield f"dK is scale · dSᵀ·Q; here dS meets {letter}", e.but(dk=e.scale * e.ds.mT @ x)
    if name != "dv":
        scores = e.scale * e.q @ e.v.mT
        yield "the scores are Q·Kᵀ; here they are Q·Vᵀ", e.but(s=e.capped(scores), slope=e.slope)
    yield from wrong_ends(e, name)


def wrong_ends(e: BackwardPass, name: str):
    """Rows that are masked where those of the other side end."""
    if name == "dq" and e.Lq < e.Lk:
        yield "keys are masked at Lq; they end at Lk", e.but(seen=e.seen & (torch.arange(e.Lk) < e.Lq))
    if name != "dq" and e.Lk < e.Lq:
        yield "queries are masked at Lk; they end at Lq", e.but(seen=e.seen & (torch.arange(e.Lq)[:, None] < e.Lk))
