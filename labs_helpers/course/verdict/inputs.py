"""Inputs for checks; a seed gives the same numbers on every machine."""

from __future__ import annotations

import torch

from labs_helpers.measure.machine import this_machine


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return normally distributed float32 numbers of this shape on this machine's device; the seed determines them."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(this_machine().device)


def with_unit_stride(x: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the values that a kernel reads if it assumes a stride of 1 along `dim` of x, as float64 on the CPU."""
    strides = [1 if d == dim else stride for d, stride in enumerate(x.stride())]
    return torch.as_strided(x, x.shape, strides, x.storage_offset()).cpu().double()
