"""Rotate the queries and keys of new positions in place, and store keys and values in a paged cache, in one launch."""

import triton
import triton.language as tl


@triton.jit
def rotate_kernel(
    qkv_ptr,
    cos_ptr,
    sin_ptr,
    positions_ptr,
    block_ptr,
    k_ptr,
    v_ptr,
    H,
    Hkv,
    size,
    stride_block,
    stride_head,
    stride_position,
    HALF: tl.constexpr,
    BLOCK_H: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Program i handles row i of qkv, (rows, (H + 2 · Hkv) · D), where D = 2 · HALF.

    cos, sin: (positions, HALF), float32. positions, block: (rows,), int64, the row's position and the block that holds
    it, `size` positions each. k, v: (blocks, Hkv, size, D). BLOCK_H ≥ H + 2 · Hkv and BLOCK_D ≥ HALF.
    """
    row = tl.program_id(0).to(tl.int64)
    at, block = tl.load(positions_ptr + row), tl.load(block_ptr + row)
    h, d = tl.arange(0, BLOCK_H)[:, None], tl.arange(0, BLOCK_D)[None, :]
    inside = d < HALF
    cos = tl.load(cos_ptr + at * HALF + d, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + at * HALF + d, mask=inside, other=0.0)
    heads = H + 2 * Hkv
    place = qkv_ptr + (row * heads + h) * (2 * HALF) + d
    exists = inside & (h < heads)
    first = tl.load(place, mask=exists, other=0.0)
    second = tl.load(place + HALF, mask=exists, other=0.0)
    turned_first = (first * cos - second * sin).to(first.dtype)  # in float32, as cos and sin are
    turned_second = (second * cos + first * sin).to(first.dtype)
    turns = exists & (h < H + Hkv)
    tl.store(place, turned_first, mask=turns)
    tl.store(place + HALF, turned_second, mask=turns)
    cache = block * stride_block + at % size * stride_position + d
    k_place = k_ptr + cache + (h - H) * stride_head
    is_k = turns & (h >= H)
    tl.store(k_place, turned_first, mask=is_k)
    tl.store(k_place + HALF, turned_second, mask=is_k)
    v_place = v_ptr + cache + (h - H - Hkv) * stride_head
    is_v = exists & (h >= H + Hkv)
    tl.store(v_place, first, mask=is_v)
    tl.store(v_place + HALF, second, mask=is_v)
