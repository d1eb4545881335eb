"""What lies in a tensor while a collective is under way: a NaN, of which every arithmetic operation makes another."""

from __future__ import annotations

import torch
from torch import Tensor

# Signalling NaNs: multiplied, added to, converted or divided they become quiet, so bytes tell that somebody did.
_SIGNALLING = {
    torch.float64: (torch.int64, 0x7FF4 << 48),
    torch.float32: (torch.int32, 0x7FA0 << 16),
    torch.bfloat16: (torch.int16, 0x7FA0),
    torch.float16: (torch.int16, 0x7D00),
}


def poison(x: Tensor) -> None:
    """Fills a contiguous tensor: floats with NaN, integers with the least number (uint8: 165); bool stays as it is."""
    if x.dtype in _SIGNALLING:
        integers, bits = _SIGNALLING[x.dtype]
        x.view(integers).fill_(bits)
    elif x.dtype == torch.uint8:
        x.fill_(165)
    elif x.dtype != torch.bool:
        x.fill_(torch.iinfo(x.dtype).min)


def same_bytes(x: Tensor, y: Tensor) -> bool:
    """Of two contiguous tensors of one dtype and size; a NaN equals itself."""
    return x.numel() == 0 or torch.equal(x.view(torch.uint8), y.view(torch.uint8))
