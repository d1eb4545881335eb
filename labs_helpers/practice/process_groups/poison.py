"""Fill a tensor with NaN while a collective is under way; every arithmetic operation on it gives another NaN."""

from __future__ import annotations

import torch
from torch import Tensor

# Signaling NaNs. Arithmetic or conversion makes them quiet, so their bytes reveal that somebody used them.
_SIGNALLING = {
    torch.float64: (torch.int64, 0x7FF4 << 48),
    torch.float32: (torch.int32, 0x7FA0 << 16),
    torch.bfloat16: (torch.int16, 0x7FA0),
    torch.float16: (torch.int16, 0x7D00),
}


def poison(x: Tensor) -> None:
    """Fill a contiguous tensor: floats with NaN, integers with the smallest number (uint8: 165); bool stays as it
    is."""
    if x.dtype in _SIGNALLING:
        integers, bits = _SIGNALLING[x.dtype]
        x.view(integers).fill_(bits)
    elif x.dtype == torch.uint8:
        x.fill_(165)
    elif x.dtype != torch.bool:
        x.fill_(torch.iinfo(x.dtype).min)


def same_bytes(x: Tensor, y: Tensor) -> bool:
    """Compare the bytes of two contiguous tensors of one dtype and size; a NaN equals itself."""
    return x.numel() == 0 or torch.equal(x.view(torch.uint8), y.view(torch.uint8))
