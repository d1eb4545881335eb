"""Inputs of lab 12's checks, on the CPU; the seed determines them."""

from __future__ import annotations

import torch

from labs_helpers.quantization.lab12.exercises import quantize_int8


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Return normally distributed numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def without_ties(w: torch.Tensor) -> torch.Tensor:
    """Return a copy of w in which numbers that int8 rounding cannot decide safely are 0.

    Two right answers may divide in different ways, and differ in the last bit of the quotient.
    """
    _, scale, _ = quantize_int8(w)
    steps = w.float() / scale[:, None]
    undecided = (steps - steps.floor() - 0.5).abs() < 0.01
    return w.masked_fill(undecided, 0.0)


def whole(low: int, high: int, *shape: int, seed: int = 0, dtype: torch.dtype = torch.int8) -> torch.Tensor:
    """Return whole numbers from `low` to `high`."""
    return torch.randint(low, high + 1, shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
