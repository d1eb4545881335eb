"""Inputs of lab 13, drawn from a seed: rotary embedding, projections, caches with leftovers, and distributions."""

from __future__ import annotations

from typing import NamedTuple

import torch


def rotate(heads: torch.Tensor, position: int) -> torch.Tensor:
    """Return rotary embedding at a position: pairs (i, i + D/2) of heads, (…, D), turn by position / 100^(2i/D)."""
    half = heads.shape[-1] // 2
    angles = position * 100.0 ** -(torch.arange(half, dtype=heads.dtype) / half)
    a, b = heads[..., :half], heads[..., half:]
    return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return normally distributed numbers, float64."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Attention(NamedTuple):
    """A description of attention with a cache: heads H and Hkv of D numbers, `length` filled positions."""

    H: int
    Hkv: int
    D: int
    length: int
    capacity: int
    width: int = 12
    seed: int = 0

    def weights(self) -> list[torch.Tensor]:
        """Return w_q, w_k and w_v."""
        shapes = ((heads, self.D, self.width) for heads in (self.H, self.Hkv, self.Hkv))
        return [numbers(*shape, seed=self.seed + i) / self.width**0.5 for i, shape in enumerate(shapes, start=10)]

    def features(self) -> torch.Tensor:
        """Return the features of all positions, those of the new one last: (length + 1, width)."""
        return 1.5 * numbers(self.length + 1, self.width, seed=self.seed)

    def cache(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return k and v, (Hkv, capacity, D), with `length` positions filled, and leftovers behind them."""
        _, w_k, w_v = self.weights()
        k, v = (2 * numbers(self.Hkv, self.capacity, self.D, seed=self.seed + i) for i in (20, 21))
        for position, x in enumerate(self.features()[:-1]):
            k[:, position], v[:, position] = rotate(w_k @ x, position), w_v @ x
        return k, v


class Paged(NamedTuple):
    """A description of a paged cache: heads H and Hkv of D numbers, blocks of `size`, one length per sequence."""

    H: int
    Hkv: int
    D: int
    size: int
    lengths: tuple[int, ...]
    seed: int = 0

    def tensors(self) -> tuple[torch.Tensor, ...]:
        """Return q, k, v, tables and lengths of `paged_attention`. Block 0 belongs to nobody who is asked about."""
        needed = [-(-length // self.size) for length in self.lengths]
        blocks = sum(needed) + 2
        order = (1 + torch.randperm(blocks - 1, generator=torch.Generator().manual_seed(self.seed))).tolist()
        tables = torch.zeros(len(needed), max(needed), dtype=torch.int64)
        for row, count in enumerate(needed):
            tables[row, :count] = torch.tensor([order.pop() for _ in range(count)])
        q = 1.5 * numbers(len(needed), self.H, self.D, seed=self.seed + 1)
        k, v = (numbers(blocks, self.Hkv, self.size, self.D, seed=self.seed + i) for i in (2, 3))
        return q, k, v, tables, torch.tensor(self.lengths)


class Step(NamedTuple):
    """A description of a speculative step: V tokens, the proposals, and a uniform number for each of them.

    certain: q is 0 for some tokens and p for others, so that some proposals are always rejected or always accepted.
    """

    V: int
    proposed: tuple[int, ...]
    uniform: tuple[float, ...]
    seed: int = 0
    certain: bool = False

    def distributions(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Return p, (K + 1, V), and q, (K, V)."""
        K = len(self.proposed)
        p, q = (numbers(rows, self.V, seed=self.seed + i).softmax(-1) for i, rows in enumerate((K + 1, K)))
        if self.certain:
            p[:, self.proposed[0]] = 0.0
            p = p / p.sum(-1, keepdim=True)
        return p, q


def pick(weights: torch.Tensor, u: float) -> int:
    """Return the token that u, 0 ≤ u < 1, draws with probabilities proportional to weights, (V,)."""
    total = weights.cumsum(0)
    return min(int((total <= u * total[-1]).sum()), len(weights) - 1)
