"""The decoding step's attention on a paged cache: plain PyTorch for any device, and the kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labs_helpers.measure.machine import this_machine
from labs_helpers.serving.paged_cache import PagedCache, Rows
from labs_helpers.transformer.decode_operations import Attend
from labs_helpers.transformer.decode_plain import attend_plain


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
