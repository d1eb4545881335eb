"""Attention in float64, and error bounds for a kernel that computes it in float32."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch

UNIT = 2.0**-24  # half the spacing of float32's numbers near 1


@dataclass
class Exact:
    """Attention in float64 on the CPU. `seen` is bool (Lq, Lk); rows that see no key have o = 0 and lse = −inf."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    scale: float
    seen: torch.Tensor

    def __post_init__(self):
        self.q, self.k, self.v = (t.detach().cpu().double() for t in (self.q, self.k, self.v))

    @cached_property
    def scores(self) -> torch.Tensor:
        return (self.scale * self.q @ self.k.mT).masked_fill(~self.seen, -math.inf)

    @cached_property
    def largest(self) -> torch.Tensor:
        return self.scores.amax(-1)

    @cached_property
    def lse(self) -> torch.Tensor:
        return self.scores.logsumexp(-1)

    @cached_property
    def weights(self) -> torch.Tensor:
        return torch.softmax(self.scores, -1).nan_to_num()

    @cached_property
    def o(self) -> torch.Tensor:
        return self.weights @ self.v

    def but(self, **changes) -> Exact:
        """Return a copy with another q, k, v, scale or seen."""
        return replace(self, **changes)

    def bounds(self, dtype) -> dict[str, torch.Tensor]:
        """Bound the errors of 'o' and 'lse' for float32 arithmetic in which P and O are each rounded once to `dtype`.

        The error of a score is at most (D+8)·2⁻²⁴·scale·Σ|q||k|. Its exponential has that relative error plus 4·2⁻²⁴
        for each unit of the exponent; a sum of Lk terms adds Lk·2⁻²⁴ (Higham, §3.1 as in verdict.matmul_bound).
        """
        half, smallest = torch.finfo(dtype).eps / 2, torch.finfo(dtype).smallest_normal
        rounding = half if dtype != torch.float32 else 0.0
        below = (self.largest[..., None] - self.scores).nan_to_num(0.0, 0.0, 0.0)
        product, magnitude = abs(self.scale) * self.q.abs() @ self.k.abs().mT, self.v.abs()
        relative = self.weights * (UNIT * ((self.q.shape[-1] + 8) * product + 4 * below) + rounding)
        steps = UNIT * (self.k.shape[-2] + 4 * below.amax(-1, keepdim=True) + 16)
        # Below the normal numbers of `dtype`, p is off by half the smallest number, before l ≥ 1 divides it.
        tiny = smallest * half * (1 + magnitude.sum(-2, keepdim=True))
        in_o = (relative + steps * self.weights) @ magnitude + (relative.sum(-1, keepdim=True) + half) * self.o.abs()
        in_lse = relative.sum(-1) + steps[..., 0] + 4 * UNIT * self.lse.abs().nan_to_num(posinf=0.0)
        return {"o": in_o + tiny, "lse": in_lse}
