"""Attention and its gradients in float64, and the largest error that a kernel's arithmetic may leave in them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import torch

U = 2.0**-24  # half the spacing of float32's numbers near 1


@dataclass(frozen=True)
class Exact:
    """Everything between q, k, v, do and the gradients. Operands (B, H, Lq, D) and (B, H, Lk, D); results float64 on
    the CPU. causal: query i sees the keys j ≤ i + Lk − Lq. cap: scores are cap · tanh(s / cap), None: as they are.
    o_dtype: what o is rounded to before delta is made of it."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    do: torch.Tensor
    scale: float
    causal: bool = False
    cap: float | None = None
    o_dtype: torch.dtype = torch.float64

    def __post_init__(self):
        for name in ("q", "k", "v", "do"):
            object.__setattr__(self, name, getattr(self, name).detach().cpu().double())

    def seen_to(self, diagonal: int) -> torch.Tensor:
        """bool (Lq, Lk): key j ≤ i + diagonal."""
        return torch.ones(self.q.shape[2], self.k.shape[2], dtype=torch.bool).tril(diagonal)

    @cached_property
    def seen(self) -> torch.Tensor:
        Lq, Lk = self.q.shape[2], self.k.shape[2]
        return self.seen_to(Lk - Lq if self.causal else Lk)

    @cached_property
    def raw(self) -> torch.Tensor:
        """The scores before cap and mask."""
        return self.scale * self.q @ self.k.mT

    @cached_property
    def s(self) -> torch.Tensor:
        """The scores before the mask."""
        return self.raw if self.cap is None else self.cap * torch.tanh(self.raw / self.cap)

    @cached_property
    def slope(self) -> torch.Tensor | float:
        """d s / d raw."""
        return 1.0 if self.cap is None else 1 - torch.tanh(self.raw / self.cap) ** 2

    @cached_property
    def lse(self) -> torch.Tensor:
        return self.s.masked_fill(~self.seen, -math.inf).logsumexp(-1)

    @cached_property
    def p(self) -> torch.Tensor:
        return self.p_of(self.s, self.seen)

    def p_of(self, s, seen) -> torch.Tensor:
        """exp(s − lse) where seen, else 0; also for a query that sees no key."""
        return torch.exp(s - self.lse[..., None]).masked_fill(~seen, 0.0)

    @cached_property
    def o(self) -> torch.Tensor:
        return self.p @ self.v

    @cached_property
    def delta(self) -> torch.Tensor:
        return (self.o.to(self.o_dtype).double() * self.do).sum(-1)

    @cached_property
    def dp(self) -> torch.Tensor:
        return self.do @ self.v.mT

    @cached_property
    def ds(self) -> torch.Tensor:
        return self.p * (self.dp - self.delta[..., None]) * self.slope

    @cached_property
    def dq(self) -> torch.Tensor:
        return self.scale * self.ds @ self.k

    @cached_property
    def dk(self) -> torch.Tensor:
        return self.scale * self.ds.mT @ self.q

    @cached_property
    def dv(self) -> torch.Tensor:
        return self.p.mT @ self.do

    def gradient(self, name: str, p, ds=None, scale=None) -> torch.Tensor:
        """dq, dk or dv ('dq', …) from another P; dS follows from it unless given."""
        if name == "dv":
            return p.mT @ self.do
        ds = p * (self.dp - self.delta[..., None]) * self.slope if ds is None else ds
        scale = self.scale if scale is None else scale
        return scale * (ds @ self.k if name == "dq" else ds.mT @ self.q)

    def bounds(self, dtype) -> dict[str, torch.Tensor]:
        """name → largest error an element of dq, dk and dv, for tiles computed in float32 from operands of `dtype`.

        Roundings are followed through P = exp(s − lse) and dS = P ∘ (dP − delta), where a sum of n products is off
        by at most n·2⁻²⁴ of Σ|a||b| (Higham, Accuracy and Stability of Numerical Algorithms, §3.1). P and dS are
        rounded to `dtype` for the tensor cores, and so are the results.
        """
        D, info = self.q.shape[3], torch.finfo(dtype)
        unit, tiny = info.eps / 2, info.smallest_normal * info.eps
        lse = self.lse.masked_fill(self.lse.isinf(), 0.0)[..., None]
        in_exponent = (D + 8) * U * self.scale * self.q.abs() @ self.k.abs().mT + 8 * U * (self.s.abs() + lse.abs() + 1)
        p_error = self.p * in_exponent.expm1()
        delta_error = (D + 4) * U * (self.o * self.do).abs().sum(-1, keepdim=True)
        dp_error = (D + 4) * U * self.do.abs() @ self.v.abs().mT + delta_error
        slope_error = 0.0 if self.cap is None else 4 * in_exponent + 16 * U  # |tanh'| and |tanh''| are at most 1
        ds_error = (
            p_error * (self.dp - self.delta[..., None]).abs()
            + self.p * dp_error
            + self.p * (self.dp - self.delta[..., None]).abs() * (slope_error + 4 * U)
        )
        p_error, ds_error = (
            error + unit * value.abs() + tiny for error, value in ((p_error, self.p), (ds_error, self.ds))
        )

        def product(scale, left, left_error, right, result):
            sum_error = (left.shape[-1] + 4) * U * left.abs() @ right.abs()
            return scale * (left_error @ right.abs() + sum_error) + unit * result.abs() + tiny

        return {
            "dq": product(self.scale, self.ds, ds_error, self.k, self.dq),
            "dk": product(self.scale, self.ds.mT, ds_error.mT, self.q, self.dk),
            "dv": product(1.0, self.p.mT, p_error.mT, self.do, self.dv),
        }
