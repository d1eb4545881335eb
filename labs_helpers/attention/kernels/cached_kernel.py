"""One decoding step of attention in one launch: rotate, append to the cache, attend to what is used, join the parts.

A program takes one part of the used positions of one K/V head, as in decode_kernels.py. The program with the fewest
keys also adds the new one, from registers, so no program waits for another's store. The program that finishes last
joins the parts (as in gemm/kernels/split_k.py), so a step needs no second kernel.
"""

# ruff: noqa: E741 - l is the paper's name for the running sum
import triton
import triton.language as tl

from labs_helpers.attention.kernels.decode_kernels import join_row
from labs_helpers.attention.kernels.portable_forward import attend, tile_of


@triton.jit(do_not_specialize=["group", "Hkv", "splits"])
def cached_attention_kernel(
    qkv_ptr,
    cos_ptr,
    sin_ptr,
    lengths_ptr,
    table_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    part_o_ptr,
    part_m_ptr,
    part_l_ptr,
    counters_ptr,
    group,
    Hkv,
    splits,
    rows,
    scale_log2,
    stride_qkv,
    stride_b,
    stride_h,
    stride_n,
    stride_table,
    D: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_S: tl.constexpr,
    PAGE: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Compute o, (B, H, D), for one new position of each sequence, and store its k and v in the caches.

    qkv: (B, (H + 2 · Hkv) · D), before the rotation. cos, sin: (positions, D/2), float32. lengths: (B,), the used
    positions of each sequence, and so the new one's index. k and v caches: (B, Hkv, capacity, D) with the same strides,
    the last of them 1. With PAGE > 0 they are (pages, Hkv, PAGE, D), and position p of sequence b is row p % PAGE of
    page table[b, p // PAGE]. Parts: as in decode_kernel, with rows = B · H. counters: int32, one per K/V head of the
    batch, zero before and after. splits programs per K/V head; BLOCK_R ≥ group. DEPENDENT: the launch may begin before
    the previous kernel ends (programmatic dependent launch).
    """
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    split, head = tl.program_id(0) % splits, tl.program_id(0) // splits
    batch, kv_head = (head // Hkv).to(tl.int64), head % Hkv
    length = tl.load(lengths_ptr + batch).to(tl.int32)
    r, n, d = tl.arange(0, BLOCK_R), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    exists, inside = r < group, d < D

    # Pairs are halves, as in transformer.model.rotate: the first half subtracts its partner's product with the sine.
    first_half = d < D // 2
    partner = tl.where(first_half, d + D // 2, d - D // 2)
    angle = length.to(tl.int64) * (D // 2) + tl.where(first_half, d, partner)
    cos = tl.load(cos_ptr + angle, mask=inside, other=0.0)
    sin = tl.load(sin_ptr + angle, mask=inside, other=0.0)
    sin = tl.where(first_half, -sin, sin)
    new = qkv_ptr + batch * stride_qkv
    q_rows = new + (kv_head * group + r)[:, None] * D
    both = exists[:, None] & inside[None, :]
    q = tl.load(q_rows + d[None, :], mask=both, other=0.0)
    q_partner = tl.load(q_rows + partner[None, :], mask=both, other=0.0)
    q = (q.to(tl.float32) * cos[None, :] + q_partner.to(tl.float32) * sin[None, :]).to(q.dtype)

    acc = tl.zeros((BLOCK_R, BLOCK_D), dtype=tl.float32)
    m = tl.full((BLOCK_R,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_R,), dtype=tl.float32)
    table = table_ptr + batch * stride_table
    first = 0 if PAGE else batch * stride_b
    k_cache = k_ptr + first + kv_head * stride_h
    v_cache = v_ptr + first + kv_head * stride_h
    if split == splits - 1:
        k_row = new + (Hkv * group + kv_head) * D
        k = tl.load(k_row + d, mask=inside, other=0.0)
        k_partner = tl.load(k_row + partner, mask=inside, other=0.0)
        k = (k.to(tl.float32) * cos + k_partner.to(tl.float32) * sin).to(k.dtype)
        v = tl.load(new + (Hkv * group + Hkv + kv_head) * D + d, mask=inside, other=0.0)
        if PAGE:
            page = tl.load(table + length // PAGE).to(tl.int64)
            place = page * stride_b + length % PAGE * stride_n + d
        else:
            place = length.to(tl.int64) * stride_n + d
        tl.store(k_cache + place, k, mask=inside)
        tl.store(v_cache + place, v, mask=inside)
        m = tl.sum(q.to(tl.float32) * k.to(tl.float32)[None, :], 1) * scale_log2
        l += 1.0
        acc += v.to(tl.float32)[None, :]

    # The blocks that are in use are divided, not those of the whole cache: one launch serves every length.
    keys_a_split = tl.cdiv(tl.cdiv(length, BLOCK_N), splits) * BLOCK_N
    start = split * keys_a_split
    stop = tl.minimum(start + keys_a_split, length)
    whole = tl.maximum(stop // BLOCK_N * BLOCK_N, start)
    stride_row = 0 if PAGE else stride_n  # the pages place the rows of a tile
    k_tile = tile_of(k_cache, 0, BLOCK_N, d, stride_row, 1)
    v_tile = tile_of(v_cache, 0, BLOCK_N, d, stride_row, 1)
    acc, m, l = attend(
        acc, m, l, q, k_tile, v_tile, stride_n, stride_n, r, n, d, start, whole, 1, length, scale_log2,
        D, BLOCK_D, BLOCK_N, False, PRECISION, False, table, stride_b, PAGE,
    )  # fmt: skip
    acc, m, l = attend(
        acc, m, l, q, k_tile, v_tile, stride_n, stride_n, r, n, d, whole, stop, 1, length, scale_log2,
        D, BLOCK_D, BLOCK_N, False, PRECISION, True, table, stride_b, PAGE,
    )  # fmt: skip

    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
    first_row = head.to(tl.int64) * group
    if BLOCK_S == 1:
        o = (acc / l[:, None]).to(o_ptr.dtype.element_ty)
        tl.store(o_ptr + (first_row + r)[:, None] * D + d[None, :], o, mask=both)
    else:
        places = split.to(tl.int64) * rows + first_row + r
        tl.store(part_m_ptr + places, m, mask=exists, cache_modifier=".cg")
        tl.store(part_l_ptr + places, l, mask=exists, cache_modifier=".cg")
        tl.store(part_o_ptr + places[:, None] * D + d[None, :], acc, mask=both, cache_modifier=".cg")
        # All threads' stores come before the one atomic (release), and the last program's loads after it (acquire).
        tl.debug_barrier()
        if tl.atomic_add(counters_ptr + head, 1, sem="acq_rel") == splits - 1:
            for row in range(first_row, first_row + group):
                o_row, _, _ = join_row(part_o_ptr, part_m_ptr, part_l_ptr, row, rows, splits, d, D, BLOCK_S)
                tl.store(o_ptr + row * D + d, o_row.to(o_ptr.dtype.element_ty), mask=inside)
            tl.store(counters_ptr + head, 0)
