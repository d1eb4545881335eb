"""The backward pass of attention in float64, in which a check can replace any value by a wrong one."""

import math
from functools import cached_property

import torch

NAMES = {"dq": "dQ", "dk": "dK", "dv": "dV"}


class BackwardPass:
    """All values between q, k, v, do and the gradients, one line per value; lse and delta are (B, H, Lq, 1).

    q and do: (B, H, Lq, D), k and v: (B, H, Lk, D); converted to float64 on the CPU. causal: query i sees the keys
    j ≤ i + Lk − Lq. cap: scores are cap · tanh(s / cap), or uncapped for None. BLOCK_M, BLOCK_N: the launch's tile
    sizes. values: values by name that replace computed ones.
    """

    def __init__(self, q, k, v, do, scale, causal=False, cap=None, BLOCK_M=64, BLOCK_N=64, **values):
        self.q, self.k, self.v, self.do = (x.detach().cpu().double() for x in (q, k, v, do))
        self.scale, self.causal, self.cap = scale, causal, cap
        self.Lq, self.Lk, self.BLOCK_M, self.BLOCK_N = q.shape[2], k.shape[2], BLOCK_M, BLOCK_N
        self.corner = self.Lk - self.Lq if causal else self.Lk  # query i sees the keys j ≤ i + corner
        vars(self).update(values)  # a cached_property finds them there

    def but(self, **values) -> "BackwardPass":
        """Return the pass with other values and everything that depends on them, as in but(seen=mask).dq.

        lse and delta stay the same, because they come from the forward pass.
        """
        same = ("q", "k", "v", "do", "scale", "causal", "cap", "BLOCK_M", "BLOCK_N", "lse", "delta")
        return BackwardPass(**{name: getattr(self, name) for name in same} | values)

    raw = cached_property(lambda e: e.scale * e.q @ e.k.mT)  # the scores before the cap
    s = cached_property(lambda e: e.capped(e.raw))
    seen = cached_property(lambda e: e.seen_to(e.corner))
    lse = cached_property(lambda e: e.s.masked_fill(~e.seen, -math.inf).logsumexp(-1, keepdim=True))
    p = cached_property(lambda e: torch.exp(e.s - e.lse).masked_fill(~e.seen, 0.0))
    o = cached_property(lambda e: e.p @ e.v)
    delta = cached_property(lambda e: (e.o * e.do).sum(-1, keepdim=True))
    dp = cached_property(lambda e: e.do @ e.v.mT)
    slope = cached_property(lambda e: 1.0 if e.cap is None else 1 - (e.s / e.cap) ** 2)  # of the cap
    ds = cached_property(lambda e: e.p * (e.dp - e.delta) * e.slope)
    dq = cached_property(lambda e: e.scale * e.ds @ e.k)
    dk = cached_property(lambda e: e.scale * e.ds.mT @ e.q)
    dv = cached_property(lambda e: e.p.mT @ e.do)

    def capped(self, s: torch.Tensor) -> torch.Tensor:
        return s if self.cap is None else self.cap * torch.tanh(s / self.cap)

    def seen_to(self, corner: int) -> torch.Tensor:
        """Return where key j ≤ query i + corner, bool (Lq, Lk)."""
        return torch.ones(self.Lq, self.Lk, dtype=torch.bool).tril(corner)

    # The first query of each query's tile, (Lq, 1), and the first key of each key's tile, (Lk,).
    first_query = cached_property(lambda e: (torch.arange(e.Lq) // e.BLOCK_M * e.BLOCK_M)[:, None])
    first_key = cached_property(lambda e: torch.arange(e.Lk) // e.BLOCK_N * e.BLOCK_N)

    def walked(self, corner: int) -> torch.Tensor:
        """Return the elements in tiles that a loop with this `corner` computes, bool (Lq, Lk)."""
        return self.first_key < self.first_query + self.BLOCK_M + corner
