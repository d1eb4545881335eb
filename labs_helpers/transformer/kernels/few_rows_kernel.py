"""y = x·Wᵀ for few rows, with RMSNorm before the product, and a sum or SwiGLU after it.

The time is that of reading W once. A program reads BLOCK_N rows of W. If that makes too few programs, several share the
rows, each with a part of K; the one that finishes last adds the parts in a fixed order, as in gemm/kernels/split_k.py.
"""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["M"])
def few_rows_kernel(
    x_ptr,
    norm_ptr,
    w_ptr,
    up_ptr,
    residual_ptr,
    y_ptr,
    parts_ptr,
    counters_ptr,
    M,
    N,
    K,
    eps,
    NORM: tl.constexpr,
    SWIGLU: tl.constexpr,
    RESIDUAL: tl.constexpr,
    SPLITS: tl.constexpr,
    EVEN: tl.constexpr,
    PRECISION: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    DEPENDENT: tl.constexpr,
    PREFETCH: tl.constexpr,
):
    """Compute y (M, N), M ≤ BLOCK_M, from contiguous x (M, K) and w (N, K).

    NORM: x is RMSNorm(x), with the weight norm (K,) and eps. The factor 1/rms of a row is applied to its sums, so that
    no program reads x twice. SWIGLU: y is silu(x·wᵀ) · (x·upᵀ). RESIDUAL: y is residual (M, N) + x·wᵀ. SPLITS parts of
    K, only without NORM and SWIGLU: parts is float32 (SPLITS, M, N), counters int32, one per tile, zero before and
    after. EVEN: BLOCK_N divides N, and BLOCK_K divides every part of K. DEPENDENT: see compile/dependent_launch.py; the
    program asks L2 for the first PREFETCH bytes of its rows of W before it waits, since no kernel writes them.
    """
    tile, split = tl.program_id(0) // SPLITS, tl.program_id(0) % SPLITS
    rows, columns = tl.arange(0, BLOCK_M), tile * BLOCK_N + tl.arange(0, BLOCK_N)
    steps = tl.cdiv(tl.cdiv(K, BLOCK_K), SPLITS)
    first = split * steps * BLOCK_K
    stop = tl.minimum(first + steps * BLOCK_K, K)
    k = first + tl.arange(0, BLOCK_K)
    starts = (columns % N).to(tl.int64) * K
    if DEPENDENT:
        tl.extra.cuda.gdc_launch_dependents()
        if PREFETCH > 0:
            prefetch(w_ptr, tile, first, N, K, BLOCK_N, PREFETCH)
            if SWIGLU:
                prefetch(up_ptr, tile, first, N, K, BLOCK_N, PREFETCH)
        tl.extra.cuda.gdc_wait()

    w_tile = w_ptr + starts[None, :] + k[:, None]
    up_tile = up_ptr + starts[None, :] + k[:, None]
    x_tile = x_ptr + rows[:, None] * K + k[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    acc_up = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    squares = tl.zeros((BLOCK_M, BLOCK_K), dtype=tl.float32)
    for start in range(first, stop, BLOCK_K):
        inside = start + tl.arange(0, BLOCK_K) < stop
        if EVEN:
            x = tl.load(x_tile, mask=rows[:, None] < M, other=0.0)
            w = tl.load(w_tile)
        else:
            x = tl.load(x_tile, mask=(rows[:, None] < M) & inside[None, :], other=0.0)
            w = tl.load(w_tile, mask=inside[:, None], other=0.0)
        if NORM:
            wide = x.to(tl.float32)
            squares += wide * wide
            norm = tl.load(norm_ptr + start + tl.arange(0, BLOCK_K), mask=inside, other=0.0)
            x = (wide * norm.to(tl.float32)[None, :]).to(w.dtype)
        acc = tl.dot(x, w, acc, input_precision=PRECISION)
        if SWIGLU:
            if EVEN:
                up = tl.load(up_tile)
            else:
                up = tl.load(up_tile, mask=inside[:, None], other=0.0)
            acc_up = tl.dot(x, up, acc_up, input_precision=PRECISION)
        x_tile += BLOCK_K
        w_tile += BLOCK_K
        up_tile += BLOCK_K

    exists = (rows[:, None] < M) & (columns[None, :] < N)
    place = rows[:, None] * N + columns[None, :]
    if NORM:
        factor = tl.rsqrt(tl.sum(squares, 1) / K + eps)
        acc *= factor[:, None]
        acc_up *= factor[:, None]
    if SWIGLU:
        acc = acc / (1.0 + tl.exp(-acc)) * acc_up
    if SPLITS == 1:
        if RESIDUAL:
            acc += tl.load(residual_ptr + place, mask=exists, other=0.0).to(tl.float32)
        tl.store(y_ptr + place, acc.to(y_ptr.dtype.element_ty), mask=exists)
    else:
        tl.store(parts_ptr + split * M * N + place, acc, mask=exists, cache_modifier=".cg")
        # All threads' stores come before the one atomic (release), and the last program's loads after it (acquire).
        tl.debug_barrier()
        if tl.atomic_add(counters_ptr + tile, 1, sem="acq_rel") == SPLITS - 1:
            total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
            for part in range(SPLITS):
                total += tl.load(parts_ptr + part * M * N + place, mask=exists, other=0.0, cache_modifier=".cg")
            if RESIDUAL:
                total += tl.load(residual_ptr + place, mask=exists, other=0.0).to(tl.float32)
            tl.store(y_ptr + place, total.to(y_ptr.dtype.element_ty), mask=exists)
            tl.store(counters_ptr + tile, 0)


@triton.jit
def prefetch(w_ptr, tile, first, N, K, BLOCK_N: tl.constexpr, PREFETCH: tl.constexpr):
    """Ask L2 for PREFETCH bytes, from column `first` on, of each row of W that this program reads (sm_90).

    Each of 128 threads asks for another piece, a multiple of 16 bytes; with fewer pieces, threads would repeat them.
    """
    PIECES: tl.constexpr = 128 // BLOCK_N if BLOCK_N < 128 else 1
    piece = tl.arange(0, BLOCK_N * PIECES)
    rows = (tile * BLOCK_N + piece // PIECES) % N
    size: tl.constexpr = PREFETCH // PIECES
    start = w_ptr + rows.to(tl.int64) * K + first
    tl.inline_asm_elementwise(
        "cp.async.bulk.prefetch.L2.global [$1], $2; mov.u32 $0, 0;",
        "=r,l,r",
        [start.to(tl.int64) + piece % PIECES * size, tl.full((BLOCK_N * PIECES,), size, tl.int32)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
