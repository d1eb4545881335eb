"""Attention for chunks of several sequences in one pass: each attends to its earlier blocks and itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from labs_helpers.transformer.model import rotate


@dataclass(frozen=True)
class Span:
    """Positions [start, stop) of a sequence, and its blocks up to `stop`."""

    start: int
    stop: int
    blocks: Sequence[int]


class ChunkAttention:
    """What `RowsForward.features` calls in every layer, for the rows of all spans one after the other.

    size: positions per block. pad: rows after the last span's, which compute nothing that counts. positions, block:
    (rows,), int64, of each row, and the block that holds it; padding is at position 0 of the scratch block 0. One
    transfer brings all numbers to the device. kernels: see `paged_attention.uses_kernels`.
    """

    def __init__(
        self, spans: Sequence[Span], size: int, device: torch.device, kernels: bool = False, pad: int = 0
    ) -> None:
        tables = [np.array(span.blocks) for span in spans]
        at = [np.arange(span.start, span.stop) for span in spans]
        held = [table[positions // size] for table, positions in zip(tables, at, strict=True)]
        padding = np.zeros(pad, np.int64)
        numbers, rows = np.concatenate([*at, padding, *held, padding, *tables]), sum(map(len, at)) + pad
        sizes = [rows, rows, *map(len, tables)]
        self.positions, self.block, *self.tables = upload(numbers, torch.int64, device).split(sizes)
        self.spans, self.kernels = spans, kernels

    def __call__(self, qkv: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return o, (rows, H · D); store the rotated k and the v in their blocks. Arguments as in `attend_paged`; qkv
        is changed."""
        rotate_and_store(qkv, cos, sin, positions, self.block, k, v, self.kernels)
        o = qkv.new_zeros(len(qkv), qkv.shape[1] - 2 * k.shape[1] * k.shape[3])
        self.attend(qkv, k, v, o)
        return o

    def attend(self, qkv: Tensor, k: Tensor, v: Tensor, o: Tensor) -> None:
        """Store the attention of all spans' rows in o, for a rotated qkv whose k and v are in their blocks."""
        Hkv, D = k.shape[1], k.shape[3]
        new = qkv.view(len(qkv), -1, D).transpose(0, 1)
        heads, first = len(new) - 2 * Hkv, 0
        for span, table in zip(self.spans, self.tables, strict=True):
            rows = slice(first, first + span.stop - span.start)
            first = rows.stop
            if span.start == 0:
                keys, values = new[heads : heads + Hkv, rows], new[heads + Hkv :, rows]
            else:
                keys, values = (cache[table].transpose(0, 1).flatten(1, 2)[:, : span.stop] for cache in (k, v))
            o[rows].view(-1, heads, D).copy_(causal(new[:heads, rows], keys, values).transpose(0, 1))


def rotate_and_store(
    qkv: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, block: Tensor, k: Tensor, v: Tensor, kernels: bool
) -> None:
    """Rotate the q and k of qkv, (rows, (H + 2 · Hkv) · D), in place, and store each row's k and v in its block."""
    Hkv, size, D = k.shape[1:]
    if kernels:
        from labs_helpers.serving.kernels.rotate import launch_rotate

        launch_rotate(qkv, cos, sin, positions, block, k, v)
        return
    new = qkv.view(len(qkv), -1, D)
    turned, offset = new[:, :-Hkv], positions % size
    turned.copy_(rotate(turned, cos[positions][:, None], sin[positions][:, None]))
    k[block, :, offset], v[block, :, offset] = turned[:, -Hkv:], new[:, -Hkv:]


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Return attention, (H, Lq, D), of the last Lq of Lk positions. q: (H, Lq, D); k, v: (Hkv, Lk, D)."""
    grouped, (Lq, Lk) = len(q) != len(k), (q.shape[1], k.shape[1])
    if Lq == Lk:
        o = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True, enable_gqa=grouped)
    elif Lq == 1:
        o = F.scaled_dot_product_attention(q[None], k[None], v[None], enable_gqa=grouped)
    else:
        bias = causal_lower_right(Lq, Lk)
        o = F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=bias, enable_gqa=grouped)
    return o[0]


def upload(numbers: Sequence[int] | Sequence[float] | np.ndarray, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the numbers as a tensor on the device, without waiting for the GPU's queue, as pageable memory would."""
    tensor = torch.tensor(numbers, dtype=dtype)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
