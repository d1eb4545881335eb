"""FlashAttention-2's forward pass in portable Triton; each program computes one tile of rows of o.

Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023, algorithm 1.
"""

# ruff: noqa: E741 - l is the paper's name for the running sum
import triton
import triton.language as tl


@triton.jit
def attention_forward_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    o_ptr,
    lse_ptr,
    H,
    Lq,
    Lk,
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
    GROUP: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute o = softmax(scale · q·kᵀ)·v and lse for BLOCK_M queries of one head.

    scale_log2 ≥ 0 is scale · log2(e), so that exp becomes exp2. GROUP query heads share a K/V head. o, (B, H, Lq, D),
    and lse, (B, H, Lq), are contiguous.
    """
    tiles = tl.cdiv(Lq, BLOCK_M)
    head = tl.program_id(0) // tiles  # numbered through the batch
    tile = tl.program_id(0) % tiles
    if CAUSAL:
        tile = tiles - 1 - tile  # the last rows see the most keys, so the longest programs start first
    batch, h = tl.cast(head // H, tl.int64), tl.cast(head % H, tl.int64)
    start = tile * BLOCK_M
    rows, n, d = start + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)

    q_tile = tile_of(q_ptr + batch * stride_qb + h * stride_qh, start, BLOCK_M, d, stride_qm, stride_qd)
    k_tile = tile_of(k_ptr + batch * stride_kb + h // GROUP * stride_kh, 0, BLOCK_N, d, stride_kn, stride_kd)
    v_tile = tile_of(v_ptr + batch * stride_vb + h // GROUP * stride_vh, 0, BLOCK_N, d, stride_vn, stride_vd)
    q = load_tile(q_tile, rows, Lq, d, D, BLOCK_D, True)
    acc = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    m = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    l = tl.zeros((BLOCK_M,), dtype=tl.float32)

    # Every row sees all keys in [0, whole), which are full tiles; some rows see some of the keys in [whole, end).
    whole, end = visible_keys(start, BLOCK_M, BLOCK_N, Lq, Lk, CAUSAL)
    acc, m, l = attend(
        acc,
        m,
        l,
        q,
        k_tile,
        v_tile,
        stride_kn,
        stride_vn,
        rows,
        n,
        d,
        0,
        whole,
        Lq,
        Lk,
        scale_log2,
        D,
        BLOCK_D,
        BLOCK_N,
        CAUSAL,
        PRECISION,
        False,
    )
    acc, m, l = attend(
        acc,
        m,
        l,
        q,
        k_tile,
        v_tile,
        stride_kn,
        stride_vn,
        rows,
        n,
        d,
        whole,
        end,
        Lq,
        Lk,
        scale_log2,
        D,
        BLOCK_D,
        BLOCK_N,
        CAUSAL,
        PRECISION,
        True,
    )

    l = tl.where(l == 0.0, 1.0, l)  # a row without a visible key: o = 0, lse = −inf
    acc = acc / l[:, None]
    lse = (m + tl.log2(l)) * 0.6931471805599453  # ln 2: from base 2 back to the natural logarithm
    first = tl.cast(head, tl.int64) * Lq + start
    m_in_tile = tl.arange(0, BLOCK_M)
    tl.store(lse_ptr + first + m_in_tile, lse, mask=rows < Lq)
    o_tile = o_ptr + first * D + m_in_tile[:, None] * D + d[None, :]
    tl.store(o_tile, acc.to(o_ptr.dtype.element_ty), mask=(rows[:, None] < Lq) & (d[None, :] < D))


@triton.jit
def attend(
    acc,
    m,
    l,
    q,
    k_tile,
    v_tile,
    stride_kn,
    stride_vn,
    rows,
    n,
    d,
    start,
    stop,
    Lq,
    Lk,
    scale_log2,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    MASKED: tl.constexpr,
    table=None,
    stride_page=0,
    PAGE: tl.constexpr = 0,
):
    """Return acc, m and l after the keys from `start` to `stop`; with MASKED, some rows do not see some of them.

    With PAGE > 0, the keys stand in pages of PAGE rows, stride_page apart, whose numbers are in `table`; k_tile and
    v_tile then point to row 0 of page 0. Each step loads the page numbers of the next one, so no tile waits for them.
    """
    if PAGE:
        pages = tl.load(table + (start + n) // PAGE, mask=start + n < Lk, other=0)
    for first in range(start, stop, BLOCK_N):
        keys = first + n
        if PAGE:
            at = pages.to(tl.int64) * stride_page
            k_at, v_at = at + keys % PAGE * stride_kn, at + keys % PAGE * stride_vn
            k_at, v_at = k_at[:, None], v_at[:, None]
            pages = tl.load(table + (keys + BLOCK_N) // PAGE, mask=keys + BLOCK_N < Lk, other=0)
        else:
            k_at, v_at = tl.cast(first, tl.int64) * stride_kn, tl.cast(first, tl.int64) * stride_vn
        k = load_tile(k_tile + k_at, keys, Lk, d, D, BLOCK_D, MASKED)
        s = tl.dot(q, tl.trans(k), input_precision=PRECISION)
        if MASKED:
            s = tl.where(visible(rows, keys, Lq, Lk, CAUSAL), s * scale_log2, float("-inf"))
            m_new = tl.maximum(m, tl.max(s, 1))
            # −inf − (−inf) is NaN, so a row that has seen no key yet subtracts 0 instead.
            m_finite = tl.where(m_new == float("-inf"), 0.0, m_new)
            alpha = tl.exp2(m - m_finite)
            p = tl.exp2(s - m_finite[:, None])
        else:
            m_new = tl.maximum(m, tl.max(s, 1) * scale_log2)
            alpha = tl.exp2(m - m_new)
            p = tl.exp2(s * scale_log2 - m_new[:, None])  # one fused multiply-add per element
        v = load_tile(v_tile + v_at, keys, Lk, d, D, BLOCK_D, MASKED)
        l = l * alpha + tl.sum(p, 1)
        acc = tl.dot(p.to(v.dtype), v, acc * alpha[:, None], input_precision=PRECISION)
        m = m_new
    return acc, m, l


@triton.jit
def visible_keys(start, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, Lq, Lk, CAUSAL: tl.constexpr):
    """Return (whole, end) for the BLOCK_M queries from `start` on.

    Each query sees all of the full tiles in [0, whole), and no query sees `end` or a later key.
    """
    if CAUSAL:
        whole = tl.maximum(start + 1 + Lk - Lq, 0) // BLOCK_N * BLOCK_N
        end = tl.minimum(start + BLOCK_M, Lq) + Lk - Lq
    else:
        whole = Lk // BLOCK_N * BLOCK_N
        end = Lk
    return whole, end


@triton.jit
def visible(rows, keys, Lq, Lk, CAUSAL: tl.constexpr):
    """Return which query sees which key, (rows, keys): existing keys and, if CAUSAL, only j ≤ i + Lk − Lq."""
    seen = keys[None, :] < Lk
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None] + (Lk - Lq))
    return seen


@triton.jit
def tile_of(head_ptr, start, BLOCK: tl.constexpr, d, stride_row, stride_d):
    """Return pointers to BLOCK rows from `start` on; the start needs 64 bits, an offset within the tile does not."""
    first = head_ptr + tl.cast(start, tl.int64) * stride_row
    return first + tl.arange(0, BLOCK)[:, None] * stride_row + d[None, :] * stride_d


@triton.jit
def load_tile(pointers, rows, length, d, D: tl.constexpr, BLOCK_D: tl.constexpr, MASKED: tl.constexpr):
    """Load a tile of rows; columns past D are 0 and, with MASKED, rows past `length`."""
    if MASKED and D == BLOCK_D:
        tile = tl.load(pointers, mask=rows[:, None] < length, other=0.0)
    elif MASKED:
        tile = tl.load(pointers, mask=(rows[:, None] < length) & (d[None, :] < D), other=0.0)
    elif D == BLOCK_D:
        tile = tl.load(pointers)
    else:
        tile = tl.load(pointers, mask=d[None, :] < D, other=0.0)
    return tile
