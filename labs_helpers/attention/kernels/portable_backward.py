"""FlashAttention-2's backward pass in portable Triton: three kernels with one writer per element of a gradient.

The kernels compute delta = rowsum(o∘do), then dK and dV by key tiles, then dQ by query tiles, and recompute P from lse.
Dao, FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning, 2023, algorithm 2.
"""

import triton
import triton.language as tl

from labs_helpers.attention.kernels.portable_forward import load_tile, tile_of, visible, visible_keys


@triton.jit
def delta_kernel(
    o_ptr,
    do_ptr,
    delta_ptr,
    H,
    Lq,
    stride_ob,
    stride_oh,
    stride_om,
    stride_od,
    stride_dob,
    stride_doh,
    stride_dom,
    stride_dod,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
):
    """Compute delta[i] = Σ_d o[i, d] · do[i, d] for BLOCK_M rows of one head, in float32, (B, H, Lq), contiguous."""
    tiles = tl.cdiv(Lq, BLOCK_M)
    head, start = tl.program_id(0) // tiles, tl.program_id(0) % tiles * BLOCK_M
    batch, h = tl.cast(head // H, tl.int64), tl.cast(head % H, tl.int64)
    m, d = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D)
    rows = start + m
    o_tile = tile_of(o_ptr + batch * stride_ob + h * stride_oh, start, BLOCK_M, d, stride_om, stride_od)
    do_tile = tile_of(do_ptr + batch * stride_dob + h * stride_doh, start, BLOCK_M, d, stride_dom, stride_dod)
    o = load_tile(o_tile, rows, Lq, d, D, BLOCK_D, True).to(tl.float32)
    do = load_tile(do_tile, rows, Lq, d, D, BLOCK_D, True).to(tl.float32)
    tl.store(delta_ptr + tl.cast(head, tl.int64) * Lq + start + m, tl.sum(o * do, 1), mask=rows < Lq)


@triton.jit
def key_value_gradients_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dk_ptr,
    dv_ptr,
    Hkv,
    Lq,
    Lk,
    scale,
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
    stride_dob,
    stride_doh,
    stride_dom,
    stride_dod,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute dK and dV for BLOCK_N keys of one K/V head in a loop over the queries of each head in its group.

    lse and delta are (B, H, Lq), dk and dv (B, Hkv, Lk, D), all contiguous.
    """
    tiles = tl.cdiv(Lk, BLOCK_N)
    head, start = tl.program_id(0) // tiles, tl.program_id(0) % tiles * BLOCK_N
    batch, h = tl.cast(head // Hkv, tl.int64), tl.cast(head % Hkv, tl.int64)
    n, d = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_D)
    keys = start + n
    k_tile = tile_of(k_ptr + batch * stride_kb + h * stride_kh, start, BLOCK_N, d, stride_kn, stride_kd)
    v_tile = tile_of(v_ptr + batch * stride_vb + h * stride_vh, start, BLOCK_N, d, stride_vn, stride_vd)
    k = load_tile(k_tile, keys, Lk, d, D, BLOCK_D, True)
    v = load_tile(v_tile, keys, Lk, d, D, BLOCK_D, True)
    dk = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, BLOCK_D), dtype=tl.float32)

    # Queries in [first, diagonal) see some of these keys, and those in [diagonal, whole), which are full tiles, see
    # all. [whole, Lq) is the partial last tile. One loop processes both masked ranges: first the diagonal, then the
    # last tile.
    first, diagonal = 0, 0
    whole = Lq // BLOCK_M * BLOCK_M
    if CAUSAL:
        last = tl.minimum(start + BLOCK_N, Lk) - 1
        first = tl.maximum(start + Lq - Lk, 0) // BLOCK_M * BLOCK_M
        diagonal = tl.minimum(tl.cdiv(tl.maximum(last + Lq - Lk, 0), BLOCK_M) * BLOCK_M, whole)
    # If the tile has keys past the end, mask every query: their P would be exp(0 − lse), which may be infinite.
    diagonal = tl.where(start + BLOCK_N > Lk, whole, diagonal)
    masked = diagonal + tl.cdiv(Lq - whole, BLOCK_M) * BLOCK_M
    for member in range(GROUP):
        q_head = h * GROUP + member
        q_tile = tile_of(q_ptr + batch * stride_qb + q_head * stride_qh, 0, BLOCK_M, d, stride_qm, stride_qd)
        do_tile = tile_of(do_ptr + batch * stride_dob + q_head * stride_doh, 0, BLOCK_M, d, stride_dom, stride_dod)
        row = (batch * Hkv * GROUP + q_head) * Lq  # the first row of this head in lse and delta
        dk, dv = add_queries(
            dk,
            dv,
            k,
            v,
            q_tile,
            do_tile,
            stride_qm,
            stride_dom,
            lse_ptr + row,
            delta_ptr + row,
            keys,
            d,
            first,
            masked,
            diagonal,
            whole,
            Lq,
            Lk,
            scale_log2,
            D,
            BLOCK_D,
            BLOCK_M,
            CAUSAL,
            PRECISION,
            True,
        )
        dk, dv = add_queries(
            dk,
            dv,
            k,
            v,
            q_tile,
            do_tile,
            stride_qm,
            stride_dom,
            lse_ptr + row,
            delta_ptr + row,
            keys,
            d,
            diagonal,
            whole,
            diagonal,
            whole,
            Lq,
            Lk,
            scale_log2,
            D,
            BLOCK_D,
            BLOCK_M,
            CAUSAL,
            PRECISION,
            False,
        )
    offsets = (tl.cast(head, tl.int64) * Lk + start) * D + n[:, None] * D + d[None, :]
    inside = (keys[:, None] < Lk) & (d[None, :] < D)
    tl.store(dk_ptr + offsets, (dk * scale).to(dk_ptr.dtype.element_ty), mask=inside)
    tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=inside)


@triton.jit
def add_queries(
    dk,
    dv,
    k,
    v,
    q_tile,
    do_tile,
    stride_qm,
    stride_dom,
    lse_row,
    delta_row,
    keys,
    d,
    start,
    stop,
    diagonal,
    whole,
    Lq,
    Lk,
    scale_log2,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    MASKED: tl.constexpr,
):
    """Return dk (without the scale) and dv after adding the query tiles from `start` to `stop`.

    With MASKED, the loop jumps from `diagonal` to `whole`. All tiles are transposed, (keys, queries), so that P and dS
    can enter their products without another transposition.
    """
    for tile in range(start, stop, BLOCK_M):
        first = tile
        if MASKED:
            first = tl.where(tile < diagonal, tile, whole)
        rows = first + tl.arange(0, BLOCK_M)
        q = load_tile(q_tile + tl.cast(first, tl.int64) * stride_qm, rows, Lq, d, D, BLOCK_D, MASKED)
        do = load_tile(do_tile + tl.cast(first, tl.int64) * stride_dom, rows, Lq, d, D, BLOCK_D, MASKED)
        if MASKED:
            # A row past the end has P = exp2(s − inf) = 0, so it adds nothing.
            lse = tl.load(lse_row + rows, mask=rows < Lq, other=float("inf"))
            delta = tl.load(delta_row + rows, mask=rows < Lq, other=0.0)
        else:
            lse = tl.load(lse_row + rows)
            delta = tl.load(delta_row + rows)
        pt = probabilities(
            tl.dot(k, tl.trans(q), input_precision=PRECISION),
            lse[None, :],
            tl.trans(visible(rows, keys, Lq, Lk, CAUSAL)),
            scale_log2,
            MASKED,
        )
        dv = tl.dot(pt.to(do.dtype), do, dv, input_precision=PRECISION)
        dpt = tl.dot(v, tl.trans(do), input_precision=PRECISION)
        dst = pt * (dpt - delta[None, :])
        dk = tl.dot(dst.to(q.dtype), q, dk, input_precision=PRECISION)
    return dk, dv


@triton.jit
def query_gradient_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    H,
    Lq,
    Lk,
    scale,
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
    stride_dob,
    stride_doh,
    stride_dom,
    stride_dod,
    GROUP: tl.constexpr,
    D: tl.constexpr,
    CAUSAL: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Compute dQ for BLOCK_M queries of one head with the forward kernel's loops; dq, (B, H, Lq, D), is contiguous."""
    tiles = tl.cdiv(Lq, BLOCK_M)
    head = tl.program_id(0) // tiles
    tile = tl.program_id(0) % tiles
    if CAUSAL:
        tile = tiles - 1 - tile
    batch, h = tl.cast(head // H, tl.int64), tl.cast(head % H, tl.int64)
    start = tile * BLOCK_M
    m, d = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D)
    rows = start + m
    q_tile = tile_of(q_ptr + batch * stride_qb + h * stride_qh, start, BLOCK_M, d, stride_qm, stride_qd)
    do_tile = tile_of(do_ptr + batch * stride_dob + h * stride_doh, start, BLOCK_M, d, stride_dom, stride_dod)
    k_tile = tile_of(k_ptr + batch * stride_kb + h // GROUP * stride_kh, 0, BLOCK_N, d, stride_kn, stride_kd)
    v_tile = tile_of(v_ptr + batch * stride_vb + h // GROUP * stride_vh, 0, BLOCK_N, d, stride_vn, stride_vd)
    q = load_tile(q_tile, rows, Lq, d, D, BLOCK_D, True)
    do = load_tile(do_tile, rows, Lq, d, D, BLOCK_D, True)
    first = tl.cast(head, tl.int64) * Lq + start
    lse = tl.load(lse_ptr + first + m, mask=rows < Lq, other=float("inf"))
    delta = tl.load(delta_ptr + first + m, mask=rows < Lq, other=0.0)
    dq = tl.zeros((BLOCK_M, BLOCK_D), dtype=tl.float32)
    whole, end = visible_keys(start, BLOCK_M, BLOCK_N, Lq, Lk, CAUSAL)
    dq = add_keys(
        dq,
        q,
        do,
        lse,
        delta,
        k_tile,
        v_tile,
        stride_kn,
        stride_vn,
        rows,
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
    dq = add_keys(
        dq,
        q,
        do,
        lse,
        delta,
        k_tile,
        v_tile,
        stride_kn,
        stride_vn,
        rows,
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
    dq_tile = dq_ptr + first * D + m[:, None] * D + d[None, :]
    tl.store(dq_tile, (dq * scale).to(dq_ptr.dtype.element_ty), mask=(rows[:, None] < Lq) & (d[None, :] < D))


@triton.jit
def add_keys(
    dq,
    q,
    do,
    lse,
    delta,
    k_tile,
    v_tile,
    stride_kn,
    stride_vn,
    rows,
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
):
    """Return dq (without the scale) after adding the keys from `start` to `stop`."""
    for first in range(start, stop, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        k = load_tile(k_tile + tl.cast(first, tl.int64) * stride_kn, keys, Lk, d, D, BLOCK_D, MASKED)
        v = load_tile(v_tile + tl.cast(first, tl.int64) * stride_vn, keys, Lk, d, D, BLOCK_D, MASKED)
        p = probabilities(
            tl.dot(q, tl.trans(k), input_precision=PRECISION),
            lse[:, None],
            visible(rows, keys, Lq, Lk, CAUSAL),
            scale_log2,
            MASKED,
        )
        dp = tl.dot(do, tl.trans(v), input_precision=PRECISION)
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision=PRECISION)
    return dq


@triton.jit
def probabilities(s, lse, seen, scale_log2, MASKED: tl.constexpr):
    """Return P = exp(scale · s − lse), and 0 where `seen` is False; lse may be −inf there (a row that sees no key)."""
    exponent = s * scale_log2 - lse * 1.4426950408889634  # log2(e)
    if MASKED:
        exponent = tl.where(seen, exponent, float("-inf"))
    return tl.exp2(exponent)
