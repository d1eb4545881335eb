"""What attention is in float64, how far float32 may be off, and what common mistakes make of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

MINUS_INF = -math.inf
LOG2E = 1 / math.log(2)


@dataclass
class Exact:
    """Attention in float64 on the CPU. `seen` is bool (Lq, Lk); rows that see nothing have o = 0, lse = −inf."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    scale: float
    seen: torch.Tensor

    @classmethod
    def of(cls, q, k, v, scale: float, seen: np.ndarray) -> Exact:
        return cls(*(t.detach().cpu().double() for t in (q, k, v)), scale, torch.from_numpy(seen))

    @cached_property
    def scores(self) -> torch.Tensor:
        return (self.scale * self.q @ self.k.mT).masked_fill(~self.seen, MINUS_INF)

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

    def bounds(self, dtype) -> tuple[torch.Tensor, torch.Tensor]:
        """The largest errors of o and lse: float32 inside, P rounded once to `dtype` and O once.

        A score is off by (D+8)·2⁻²⁴·scale·Σ|q||k|, its exponential by that, relatively, and 4·2⁻²⁴ for each unit
        that the exponent is away from 0; a sum of Lk by Lk·2⁻²⁴ (Higham, §3.1 as in course.compare).
        """
        unit, half = 2.0**-24, torch.finfo(dtype).eps / 2
        rounding = half if dtype != torch.float32 else 0.0
        scores, weights, magnitude = self.scores, self.weights, self.v.abs()
        below = (self.largest[..., None] - scores).nan_to_num(0.0, 0.0, 0.0)
        product = abs(self.scale) * self.q.abs() @ self.k.abs().mT
        relative = weights * (unit * ((self.q.shape[-1] + 8) * product + 4 * below) + rounding)
        steps = unit * (self.k.shape[-2] + 4 * below.amax(-1, keepdim=True) + 16)
        # A p below the normal numbers of `dtype` is off by half of the smallest one, before it is divided by l ≥ 1.
        tiny = torch.finfo(dtype).smallest_normal * half * magnitude.sum(-2, keepdim=True)
        o = (
            relative @ magnitude
            + self.o.abs() * relative.sum(-1, keepdim=True)
            + steps * (weights @ magnitude)
            + tiny
            + half * self.o.abs()
            + torch.finfo(dtype).smallest_normal * half
        )
        lse = relative.sum(-1) + steps[..., 0] + 4 * unit * self.lse.abs().nan_to_num(posinf=0.0)
        return o, lse

    def but(self, **changes) -> Exact:
        """The same with another q, k, v, scale or seen."""
        return replace(self, **changes)

    def loop(self, BLOCK_N: int, rescale_sum=True, rescale_o=True) -> tuple[torch.Tensor, torch.Tensor]:
        """(o, lse) by the tile loop, where a new maximum may leave l or the accumulator as it was."""
        scores, shape = self.scores, self.q.shape[:-1]
        m, total = torch.full(shape, MINUS_INF, dtype=torch.float64), torch.zeros(shape, dtype=torch.float64)
        o = torch.zeros_like(self.q)
        for start in range(0, self.k.shape[-2], BLOCK_N):
            s = scores[..., start : start + BLOCK_N]
            m_new = torch.maximum(m, s.amax(-1))
            shift = m_new.masked_fill(m_new == MINUS_INF, 0.0)
            p, factor = torch.exp(s - shift[..., None]), torch.exp(m - shift)
            total = total * (factor if rescale_sum else 1.0) + p.sum(-1)
            o = o * (factor[..., None] if rescale_o else 1.0) + p @ self.v[..., start : start + BLOCK_N, :]
            m = m_new
        return o / total.masked_fill(total == 0, 1.0)[..., None], m + total.log()


def slips(exact: Exact, BLOCK_N: int) -> tuple[dict, dict]:
    """(of o, of lse): cause → what o or lse would be."""
    Lk, scale = exact.k.shape[-2], exact.scale
    sums = torch.exp(exact.lse - exact.largest)
    keys = torch.arange(Lk)
    last = (Lk - 1) // BLOCK_N * BLOCK_N
    both, (o_kept, _), (sum_kept, _) = (
        exact.loop(BLOCK_N, False, False),
        exact.loop(BLOCK_N, rescale_o=False),
        exact.loop(BLOCK_N, rescale_sum=False),
    )
    with_exp = "LOG2E is for exp2; with exp the scores are multiplied once too often"
    changed = {
        "scale is missing": exact.but(scale=1.0),
        "scale is applied twice": exact.but(scale=scale**2),
        "the default 1/√D stands where scale should": exact.but(scale=exact.q.shape[-1] ** -0.5),
        "exp2 takes scores in base 2: multiply them by LOG2E": exact.but(scale=scale / LOG2E),
        with_exp: exact.but(scale=scale * LOG2E),
        "only the first tile of K and V counts: `start` has to enter the pointers, and acc to be added to": exact.but(
            seen=exact.seen & (keys < BLOCK_N)
        ),
        "only the last tile is left: l_i and acc have to be added to": exact.but(seen=exact.seen & (keys >= last)),
        "the last tile is missing": exact.but(seen=exact.seen & (keys < last)),
        "K and V are swapped": exact.but(k=exact.v, v=exact.k),
        "V is read where K should be": exact.but(k=exact.v),
        "K is read where V should be": exact.but(v=exact.k),
    }
    of_o = {
        "the accumulator is not rescaled when the maximum grows": o_kept,
        "l_i is not rescaled when the maximum grows": sum_kept,
        "neither l_i nor the accumulator is rescaled when the maximum grows": both[0],
        "O is not divided by l_i": exact.o * sums[..., None],
        "O is multiplied by l_i": exact.o * sums[..., None] ** 2,
    } | {text: wrong.o for text, wrong in changed.items()}
    of_lse = {
        "the log-sum-exp is in base 2: divide it by LOG2E": exact.lse * LOG2E,
        "m_i is in base 2: divide it by LOG2E too": exact.largest * LOG2E + sums.log(),
        "log2(l_i) is in base 2: divide it by LOG2E too": exact.largest + sums.log() * LOG2E,
        "m_i is missing: the log-sum-exp is m_i + log l_i": sums.log(),
        "log l_i is missing: the log-sum-exp is m_i + log l_i": exact.largest,
        "l_i itself is added, not its logarithm": exact.largest + sums,
        "multiplied by LOG2E instead of divided: that goes from base e to base 2": exact.lse * LOG2E**2,
        "l_i is not rescaled when the maximum grows": both[1],
        "the sum is stored, not its logarithm": sums,
        with_exp: exact.but(scale=scale * LOG2E).lse + exact.largest * (1 - LOG2E),
    }
    for sign, cause in (
        (1, "exp overflows: the maximum is not subtracted"),
        (-1, "every exp is 0: the running maximum starts at 0, not at −inf, or is not subtracted"),
    ):
        if bool((sign * exact.largest > 80).all()):
            of_o[cause] = torch.full_like(exact.o, torch.nan)
            of_lse[cause] = torch.full_like(exact.lse, sign * torch.inf)
    not_kept = {
        "the new maximum is not kept: m_i = m_new at the end of the step": torch.full_like(exact.lse, MINUS_INF)
    }
    return of_o, {text: wrong.lse for text, wrong in changed.items()} | of_lse | not_kept
