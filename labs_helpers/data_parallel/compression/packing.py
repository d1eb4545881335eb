"""Pack tensors of several dtypes into one tensor of bytes, so that a single collective can send them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import pad

ALIGNMENT = 8  # bytes: a tensor of any dtype may start at a multiple of 8


def pack(tensors: Sequence[Tensor]) -> Tensor:
    """Concatenate the tensors' bytes as uint8, each padded to a multiple of 8."""
    return torch.cat([pad(x.contiguous().view(-1).view(torch.uint8), (0, -x.nbytes % ALIGNMENT)) for x in tensors])


def unpack(message: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Return the tensors in a message as views. like: tensors with the same shapes and dtypes."""
    parts = message.split([x.nbytes + -x.nbytes % ALIGNMENT for x in like])
    return [part[: x.nbytes].view(x.dtype).view(x.shape) for part, x in zip(parts, like, strict=True)]
