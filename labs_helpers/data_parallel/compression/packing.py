"""Tensors of several dtypes as one row of bytes: one collective carries a message with all that belongs to it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

ALIGNMENT = 8  # bytes: a tensor of any dtype may begin at a multiple of it


def pack(tensors: Sequence[Tensor]) -> Tensor:
    """Their bytes behind one another, each tensor's filled up to a multiple of 8: uint8."""
    return torch.cat([pad(x.contiguous().view(-1).view(torch.uint8), (0, -x.nbytes % ALIGNMENT)) for x in tensors])


def unpack(message: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The tensors in a message, by those that were packed for another of the same length: views."""
    parts = message.split([x.nbytes + -x.nbytes % ALIGNMENT for x in like])
    return [part[: x.nbytes].view(x.dtype).view(x.shape) for part, x in zip(parts, like, strict=True)]
