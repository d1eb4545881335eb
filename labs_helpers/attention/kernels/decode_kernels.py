"""Attention of a few queries to many keys: several programs share the keys of a head, and their parts are merged.

With one query per head there is only one tile of rows per K/V head, which is too few programs for a GPU; the time is
that of reading K and V once. A program therefore takes one part of the keys of one K/V head, and all query rows that
read this head (the group's heads × queries) in one tile. Dao et al., Flash-Decoding for long-context inference, 2023.
"""

# ruff: noqa: E741 - l is the paper's name for the running sum
import triton
import triton.language as tl

from labs_helpers.attention.kernels.portable_forward import attend, tile_of


# The sizes do not affect how a tile is loaded, so one build serves all of them.
@triton.jit(do_not_specialize=["group", "Hkv", "Lq", "Lk", "keys_a_split", "splits", "tiles", "all_heads"])
def decode_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    part_o_ptr,
    part_m_ptr,
    part_l_ptr,
    group,
    Hkv,
    Lq,
    Lk,
    keys_a_split,
    splits,
    tiles,
    all_heads,
    scale_log2,
    stride_qb,
    stride_qh,
    stride_qm,
    stride_qd,
    stride_kb,
    stride_kh,
    stride_kn,
    stride_kd,
    stride_vb,
    stride_vh,
    stride_vn,
    stride_vd,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_R: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SPLIT: tl.constexpr,
):
    """Compute BLOCK_R of the group · Lq rows of one K/V head for keys [split, split + 1) · keys_a_split.

    keys_a_split is a multiple of BLOCK_N. Program numbers go by row tile (tiles share keys), then by split, then by K/V
    head of the batch. With SPLIT, the kernel stores each row's part in float32: m, the largest score · scale · log2(e),
    and l = Σ exp2(s − m), both (splits, B · H · Lq), and o = Σ exp2(s − m)·v, (splits, B · H · Lq, D). Without it there
    is one split, and o (B, H, Lq, D) and lse (B, H, Lq) are the result. scale_log2 ≥ 0 is scale · log2(e).
    """
    program = tl.program_id(0)
    tile, split, head = program % tiles, program // tiles % splits, (program // tiles // splits).to(tl.int64)
    batch, kv_head = head // Hkv, head % Hkv
    inside = tile * BLOCK_R + tl.arange(0, BLOCK_R)  # rows of this K/V head: query head, then query
    exists = inside < group * Lq
    queries = inside % Lq
    n, d = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)

    row_starts = (kv_head * group + inside // Lq) * stride_qh + queries.to(tl.int64) * stride_qm
    q_tile = q_ptr + batch * stride_qb + row_starts[:, None] + d[None, :] * stride_qd
    q = tl.load(q_tile, mask=exists[:, None] & (d[None, :] < D), other=0.0)
    k_tile = tile_of(k_ptr + batch * stride_kb + kv_head * stride_kh, 0, BLOCK_N, d, stride_kn, stride_kd)
    v_tile = tile_of(v_ptr + batch * stride_vb + kv_head * stride_vh, 0, BLOCK_N, d, stride_vn, stride_vd)
    acc = tl.zeros((BLOCK_R, BLOCK_D), dtype=tl.float32)
    m = tl.full((BLOCK_R,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_R,), dtype=tl.float32)

    # Every row sees all of this split's keys before `whole`, which are full tiles.
    start = split * keys_a_split
    stop = tl.minimum(start + keys_a_split, Lk)
    seen_by_all = tl.maximum(1 + Lk - Lq, 0) if CAUSAL else Lk
    whole = tl.minimum(tl.maximum(seen_by_all // BLOCK_N * BLOCK_N, start), stop // BLOCK_N * BLOCK_N)
    acc, m, l = attend(
        acc, m, l, q, k_tile, v_tile, stride_kn, stride_vn, queries, n, d, start, whole, Lq, Lk, scale_log2,
        D, BLOCK_D, BLOCK_N, CAUSAL, PRECISION, False,
    )  # fmt: skip
    acc, m, l = attend(
        acc, m, l, q, k_tile, v_tile, stride_kn, stride_vn, queries, n, d, whole, stop, Lq, Lk, scale_log2,
        D, BLOCK_D, BLOCK_N, CAUSAL, PRECISION, True,
    )  # fmt: skip

    rows = head * group * Lq + inside  # in (B, H, Lq); a group's heads are consecutive
    if SPLIT:
        rows += split * (tl.cast(all_heads, tl.int64) * group * Lq)
        tl.store(part_m_ptr + rows, m, mask=exists)
        tl.store(part_l_ptr + rows, l, mask=exists)
        tl.store(part_o_ptr + rows[:, None] * D + d[None, :], acc, mask=exists[:, None] & (d[None, :] < D))
    else:
        total = tl.where(l == 0.0, 1.0, l)  # a row without a visible key: o = 0, lse = −inf
        tl.store(lse_ptr + rows, (m + tl.log2(total)) * 0.6931471805599453, mask=exists)  # ln 2: back from base 2
        o = (acc / total[:, None]).to(o_ptr.dtype.element_ty)
        tl.store(o_ptr + rows[:, None] * D + d[None, :], o, mask=exists[:, None] & (d[None, :] < D))


@triton.jit(do_not_specialize=["rows", "splits"])
def join_kernel(
    part_o_ptr,
    part_m_ptr,
    part_l_ptr,
    o_ptr,
    lse_ptr,
    rows,
    splits,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_S: tl.constexpr,
):
    """Compute o and lse of one row from its parts, with the formula of `merge` (lab 04, exercise 2).

    Merging is associative, so all parts can be merged in one step. The kernel takes the maximum over the parts and each
    part's factor, which turns exp2(s − m_part) into exp2(s − m) and is 0 for a part that has seen no key. l and o are
    the sums of the rescaled parts. BLOCK_S ≥ splits; one program per row of (B, H, Lq).
    """
    row = tl.program_id(0).to(tl.int64)
    d = tl.arange(0, BLOCK_D)
    o, m, l = join_row(part_o_ptr, part_m_ptr, part_l_ptr, row, rows, splits, d, D, BLOCK_S)
    tl.store(lse_ptr + row, (m + tl.log2(l)) * 0.6931471805599453)
    tl.store(o_ptr + row * D + d, o.to(o_ptr.dtype.element_ty), mask=d < D)


@triton.jit
def join_row(part_o_ptr, part_m_ptr, part_l_ptr, row, rows, splits, d, D: tl.constexpr, BLOCK_S: tl.constexpr):
    """Return (o, m, l) of one row from its parts; l is 1 for a row that has seen no key. BLOCK_S ≥ splits."""
    s = tl.arange(0, BLOCK_S)
    places = s.to(tl.int64) * rows + row
    m_part = tl.load(part_m_ptr + places, mask=s < splits, other=float("-inf"), cache_modifier=".cg")
    l_part = tl.load(part_l_ptr + places, mask=s < splits, other=0.0, cache_modifier=".cg")
    loaded = (s[:, None] < splits) & (d[None, :] < D)
    parts = part_o_ptr + places[:, None] * D + d[None, :]
    o_part = tl.load(parts, mask=loaded, other=0.0, cache_modifier=".cg")
    m = tl.max(m_part, 0)
    factor = tl.exp2(m_part - tl.where(m == float("-inf"), 0.0, m))
    l = tl.sum(factor * l_part, 0)
    l = tl.where(l == 0.0, 1.0, l)
    return tl.sum(factor[:, None] * o_part, 0) / l, m, l
