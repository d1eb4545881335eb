"""Causes of a NaN in a gradient: a load past the end, or a P that is not set to 0."""

import math

import torch

from labs_helpers.attention.lab04.checks.bare_loads import loads_without_other
from labs_helpers.attention.lab05.checks.backward_pass import BackwardPass


def nan_causes(e: BackwardPass, name: str, kernel=None):
    """Yield (sentence, the pass with the mistake's NaN)."""
    blind = e.lse.isinf()
    for mask in (blind, blind & e.walked(e.corner)):
        yield (
            "a query that sees no key has lse = −inf, and exp(−inf + inf) is NaN; set P itself to 0 (tl.where)",
            e.but(p=e.p.masked_fill(mask, math.nan)),
        )
    if bool((e.lse[e.lse.isfinite()] < -88).any()):
        yield (
            "exp(s) is divided by exp(lse), and both are 0 here; compute P = exp(s − lse)",
            e.but(p=torch.full_like(e.p, math.nan)),
        )
    if cause := past_the_end(e, name, kernel):
        yield cause, e.but(p=torch.full_like(e.p, math.nan))


def past_the_end(e: BackwardPass, name: str, kernel) -> str:
    if not (e.Lk % e.BLOCK_N if name == "dq" else e.Lq % e.BLOCK_M):
        return ""
    # A program does not store its own rows past the end, and a NaN in lse reaches only a P that is set to 0.
    harmless = ("q", "do", "delta", "lse") if name == "dq" else ("k", "v", "lse")
    if kernel and (bare := [x for x in loads_without_other(kernel) if x not in harmless]):
        loads = f"the load{'s' * (len(bare) > 1)} of {', '.join(bare)}"
        return f"past the end P is 0, but 0 · NaN is NaN; give {loads} other=0.0"
    if name != "dq":
        return "queries past the end are not masked; set their P to 0"
    if bool((e.lse[e.lse.isfinite()] < -88).any()):  # float32 cannot represent exp(89)
        return (
            "keys past the end are not masked: k is 0 there, so P is exp(−lse), here infinite; set P to 0 with "
            "tl.where, because ∞ · 0 is NaN"
        )
    return ""
