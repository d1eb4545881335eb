"""A cache of keys and values in blocks, which requests take as they grow, and the decoding step's attention on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from labs_helpers.measure.machine import this_machine
from labs_helpers.transformer.decode_operations import Attend
from labs_helpers.transformer.decode_plain import attend_plain
from labs_helpers.transformer.model import Transformer


class PagedCache:
    """Keys (rotated) and values of `blocks` blocks of `size` positions in every layer, and the scratch block 0.

    k, v: (layers, blocks + 1, Hkv, size, D), in the model's dtype, on its device. capacity: the positions of the
    longest sequence.
    """

    def __init__(self, model: Transformer, blocks: int, size: int) -> None:
        config, weight = model.config, model.norm.weight
        shape = (config.layers, blocks + 1, config.key_value_heads, size, config.head_dim)
        self.k, self.v = (torch.zeros(shape, dtype=weight.dtype, device=weight.device) for _ in range(2))
        self.size, self.capacity = size, config.context

    @property
    def nbytes(self) -> int:
        """The bytes of keys and values, with those of the scratch block."""
        return self.k.nbytes + self.v.nbytes

    def copy(self, copies: list[tuple[int, int]]) -> None:
        """Copy blocks, (from, to) each, in every layer. It reads all of them before it writes."""
        if copies:
            sources, targets = (list(blocks) for blocks in zip(*copies, strict=True))
            for cache in (self.k, self.v):
                cache[:, targets] = cache[:, sources]


@dataclass(frozen=True)
class Rows:
    """The sequences that a decoding step continues. lengths: (B,), int32, the used positions of each. table: (B, most
    blocks), int32, their blocks in order. Padding has the length 0, and scratch blocks."""

    lengths: Tensor
    table: Tensor


def attend_paged(qkv: Tensor, cos: Tensor, sin: Tensor, lengths: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
    """Return o, (B, H · D), of one new position per sequence; store its rotated k and its v in their block.

    k, v: (blocks, Hkv, size, D). The others are as in `attend_plain`, which computes it on a copy of the sequences'
    blocks, one after the other. For any device and dtype.
    """
    B, size, at = len(table), k.shape[2], lengths.long()
    whole = [cache[table].transpose(1, 2).flatten(2, 3) for cache in (k, v)]  # (B, Hkv, blocks · size, D)
    o = attend_plain(qkv, cos, sin, lengths, *whole)
    sequence = torch.arange(B, device=at.device)
    block, offset = table[sequence, at // size], at % size
    for cache, copied in zip((k, v), whole, strict=True):
        cache[block, :, offset] = copied[sequence, :, at]
    return o


def paged_attention(cache: PagedCache, rows: Rows, heads: int) -> Attend:
    """Return the attention of these rows: the kernel for 16-bit floats on a GPU, else plain PyTorch."""
    attend: Callable[..., Tensor] = attend_paged
    if cache.k.is_cuda and cache.k.dtype in (torch.float16, torch.bfloat16) and not this_machine().interpreted:
        from labs_helpers.attention.kernels.cached import CachedAttention

        attend = CachedAttention(cache.k[0], heads, dependent=False, table=rows.table)

    def of_these_rows(qkv: Tensor, cos: Tensor, sin: Tensor, lengths: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return attend(qkv, cos, sin, lengths, k, v, rows.table)

    return of_these_rows
