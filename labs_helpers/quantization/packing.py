"""Two 4-bit values per byte."""

from __future__ import annotations

import torch
from torch import Tensor


def pack_int4(q: Tensor) -> Tensor:
    """Pack codes from 0 to 15, (…, K), into bytes, uint8 (…, K/2): the even column in a byte's lower four bits.

    Raises ValueError for an odd K, or codes outside of 0 to 15.
    """
    if q.shape[-1] % 2:
        raise ValueError(f"K is {q.shape[-1]}; two values share a byte, so it has to be even")
    if q.numel() and (q.min() < 0 or q.max() > 15):
        raise ValueError(f"codes are {int(q.min())} to {int(q.max())}; four bits hold 0 to 15")
    q = q.to(torch.uint8)
    return q[..., 0::2] | (q[..., 1::2] << 4)


def unpack_int4(packed: Tensor) -> Tensor:
    """Return the codes, uint8 (…, K), of bytes (…, K/2)."""
    return torch.stack([packed & 15, packed >> 4], dim=-1).flatten(-2)
