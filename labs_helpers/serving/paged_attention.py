"""The decoding step's attention on a paged cache: plain PyTorch for any device, and the kernel."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from labs_helpers.measure.machine import this_machine
from labs_helpers.serving.chunks import rotate_and_store
from labs_helpers.serving.paged_cache import PagedCache
from labs_helpers.transformer.decode_operations import Attend
from labs_helpers.transformer.decode_plain import attend_plain


def attend_paged(qkv: Tensor, cos: Tensor, sin: Tensor, lengths: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
    """Return o, (B, H · D), of one new position per sequence; store its rotated k and its v in their block.

    k, v: (blocks, Hkv, size, D). table: (B, most blocks), int32, each sequence's blocks in order. The others are as in
    `attend_plain`, which computes it on a copy of the sequences' blocks. For any device and dtype.
    """
    B, size, at = len(table), k.shape[2], lengths.long()
    whole = [cache[table].transpose(1, 2).flatten(2, 3) for cache in (k, v)]  # (B, Hkv, blocks · size, D)
    o = attend_plain(qkv, cos, sin, lengths, *whole)
    sequence = torch.arange(B, device=at.device)
    block, offset = table[sequence, at // size], at % size
    for cache, copied in zip((k, v), whole, strict=True):
        cache[block, :, offset] = copied[sequence, :, at]
    return o


def uses_kernels(cache: PagedCache) -> bool:
    """Return True if the course's kernels compute a decoding step: for 16-bit floats on a GPU."""
    return cache.k.is_cuda and cache.k.dtype in (torch.float16, torch.bfloat16) and not this_machine().interpreted


def paged_attention(cache: PagedCache, table: Tensor, heads: int, together: bool = False) -> Attend:
    """Return the attention for rows with these tables: the kernel, or plain PyTorch.

    together: several rows are positions of one sequence, one after the other. Each row then stores its key and value
    before any row attends. (The attention stores them once more, which changes nothing but, in 16 bits, a rounding.)
    """
    attend: Callable[..., Tensor] = attend_paged
    if uses_kernels(cache):
        from labs_helpers.attention.kernels.cached import CachedAttention

        attend = CachedAttention(cache.k[0], heads, dependent=False, table=table)

    def of_these_rows(qkv: Tensor, cos: Tensor, sin: Tensor, lengths: Tensor, k: Tensor, v: Tensor) -> Tensor:
        if together:
            at = lengths.long()
            block = table.gather(1, at[:, None] // cache.size).long()[:, 0]
            rotate_and_store(qkv.clone(), cos, sin, at, block, k, v, uses_kernels(cache))
        return attend(qkv, cos, sin, lengths, k, v, table)

    return of_these_rows
