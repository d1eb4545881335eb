"""Attention for chunks of several sequences in one pass: each attends to its earlier blocks and itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """What `DecodeStep.features` calls in every layer, for the rows of all spans one after the other.

    size: positions per block. positions: (rows,), int64, of each row. One transfer brings all numbers to the device.
    """

    def __init__(self, spans: Sequence[Span], size: int, device: torch.device) -> None:
        places = [(at, span.blocks[at // size]) for span in spans for at in range(span.start, span.stop)]
        numbers = [at for at, _ in places] + [block for _, block in places]
        numbers += [block for span in spans for block in span.blocks]
        sizes = [len(places), len(places), *(len(span.blocks) for span in spans)]
        self.positions, self.block, *self.tables = upload(numbers, torch.int64, device).split(sizes)
        self.offset, self.spans = self.positions % size, spans
        self.angles: tuple[Tensor, Tensor] | None = None

    def __call__(self, qkv: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Return o, (rows, H · D); store the rotated k and the v in their blocks. Arguments as in `attend_paged`."""
        Hkv, D = k.shape[1], k.shape[3]
        new = qkv.view(len(qkv), -1, D)
        heads = new.shape[1] - 2 * Hkv
        if self.angles is None:  # the same in all layers
            self.angles = cos[positions][:, None], sin[positions][:, None]
        turned, new_v = rotate(new[:, : heads + Hkv], *self.angles), new[:, heads + Hkv :]
        q, new_k = turned[:, :heads], turned[:, heads:]
        k[self.block, :, self.offset], v[self.block, :, self.offset] = new_k, new_v
        o, first = [], 0
        for span, table in zip(self.spans, self.tables, strict=True):
            rows = slice(first, first + span.stop - span.start)
            first = rows.stop
            if span.start == 0:
                keys, values = new_k[rows].transpose(0, 1), new_v[rows].transpose(0, 1)
            else:
                keys, values = (cache[table].transpose(0, 1).flatten(1, 2)[:, : span.stop] for cache in (k, v))
            o.append(causal(q[rows].transpose(0, 1), keys, values).transpose(0, 1))
        return torch.cat(o).flatten(1)


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


def upload(numbers: Sequence[int] | Sequence[float], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the numbers as a tensor on the device, without waiting for the GPU's queue, as pageable memory would."""
    tensor = torch.tensor(numbers, dtype=dtype)
    return tensor.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else tensor
