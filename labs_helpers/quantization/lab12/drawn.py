"""Inputs of lab 12, on the CPU: drawn from a seed, away from ties of rounding, or as a cache holds them."""

from __future__ import annotations

import torch


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normally distributed numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def without_ties(w: torch.Tensor) -> torch.Tensor:
    """Return a copy of w in which numbers that int8 rounding cannot decide safely are 0.

    Two right answers may divide in different ways, and differ in the last bit of the quotient.
    """
    largest = w.float().abs().amax(dim=1, keepdim=True)
    steps = 127 * w.float() / torch.where(largest > 0, largest, 127.0)
    undecided = (steps - steps.floor() - 0.5).abs() < 0.01
    return w.masked_fill(undecided, 0.0)


def whole(low: int, high: int, *shape: int, seed: int = 0, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    """Return whole numbers from `low` to `high`."""
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def cached(x: torch.Tensor, room: torch.Tensor | float = 1.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (q, scale): keys or values, (H, L, D), as int8, with one scale per position, (H, L).

    room: how many times as large as a position's largest value its range is, (H, L).
    """
    scale = room * x.abs().amax(dim=2) / 127
    return (x / scale[..., None]).round().to(torch.int8), scale
