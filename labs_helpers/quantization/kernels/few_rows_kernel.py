"""The kernel for products with few rows, whose time is that of reading the weight.

It computes yᵀ = W · xᵀ in tiles of BLOCK_N outputs, so that the tensor cores' tall operand is the weight, which they
take from registers right after its conversion. A program's warps share a tile, each with a slice of every block of K:
more warps then bring more loads in flight, and each reads its own columns of x alone. Where the tiles do not fill the
GPU, several programs share a tile, each with a part of K; the last one to arrive adds the parts in their order, so
equal inputs give equal bits.
"""

from __future__ import annotations

import triton
import triton.language as tl

from labs_helpers.quantization.kernels.codes import FP8, INT4, INT8, both_codes, float8_numbers, offset

_INT8, _INT4, _FP8 = tl.constexpr(INT8), tl.constexpr(INT4), tl.constexpr(FP8)


@triton.jit
def down(v, SLICES: tl.constexpr):
    """Return v, (length,) or (slice, length), as columns of each slice's matrix. A single slice has no axis."""
    if SLICES == 1:
        return v[:, None]
    elif len(v.shape) == 1:
        return v[None, :, None]
    else:
        return v[:, :, None]


@triton.jit
def across(v, SLICES: tl.constexpr):
    """Return v, (length,) or (slice, length), as rows of each slice's matrix."""
    if SLICES == 1:
        return v[None, :]
    elif len(v.shape) == 1:
        return v[None, None, :]
    else:
        return v[:, None, :]


@triton.jit
def load_x(x_ptr, norm_ptr, m, k, M, K, NORM: tl.constexpr, SLICES: tl.constexpr, EVEN: tl.constexpr):
    """Return slices (k, m) of xᵀ, times the norm's weight."""
    inside = across(m, SLICES) < M
    if not EVEN:
        inside = inside & (down(k, SLICES) < K)
    x = tl.load(x_ptr + across(m, SLICES) * K + down(k, SLICES), mask=inside, other=0.0)
    if NORM:
        x = x * down(tl.load(norm_ptr + (k if EVEN else k % K)), SLICES)
    return x


@triton.jit
def sums_of_squares(x_ptr, M, K, ROWS: tl.constexpr, BLOCK_M: tl.constexpr):
    """Return the sums of squares of x's rows, (BLOCK_M,): those of the first ROWS ≥ M, again and again."""
    BLOCK: tl.constexpr = 2048 if ROWS <= 8 else (16384 if ROWS <= 16 else 4096) // ROWS
    m, k = tl.arange(0, ROWS), tl.arange(0, BLOCK)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        inside = (m[:, None] < M) & (start + k[None, :] < K)
        x = tl.load(x_ptr + m[:, None] * K + start + k[None, :], mask=inside, other=0.0).to(tl.float32)
        squares += x * x
    again: tl.constexpr = BLOCK_M // ROWS
    return tl.reshape(tl.broadcast_to(tl.sum(squares, axis=1)[None, :], (again, ROWS)), (BLOCK_M,))


@triton.jit
def add_int4(acc, numbers, x, word, SLICES: tl.constexpr):
    """Return acc + scale · (code − zero) · x for one group: the differences are exact, and scales stay outside.

    word: a row's scale (lower half) and zero point, both in bfloat16. One load of 32 bits is copied ahead with the
    codes; two narrow loads would stop every step until they arrive.
    """
    scale = (word << 16).to(tl.float32, bitcast=True)
    zero = (word & -65536).to(tl.float32, bitcast=True) + offset(x.dtype)
    w = numbers - down(zero.to(x.dtype), SLICES)
    return acc + down(scale, SLICES) * tl.dot(w, x, input_precision="ieee")


@triton.jit
def add_block(acc, x, x_high, w_ptr, scale_ptr, n, slices, N, row, FORMAT: tl.constexpr, GROUP: tl.constexpr,
              SLICES: tl.constexpr, BLOCK_K: tl.constexpr, EVEN: tl.constexpr, PTX: tl.constexpr):  # fmt: skip
    """Return acc, (n, m) per slice, plus the products of slices of BLOCK_K columns."""
    k = slices * BLOCK_K + tl.arange(0, BLOCK_K)
    place = w_ptr + down(n, SLICES) * row + across(k, SLICES)
    if EVEN:
        w = tl.load(place, eviction_policy="evict_first")
    else:
        w = tl.load(place, mask=across(k, SLICES) < row, other=0, eviction_policy="evict_first")
    if FORMAT == _INT4:
        pair = slices * BLOCK_K // GROUP
        group = 2 * (pair if EVEN else pair % (row // GROUP))  # beyond the last, x is 0
        first = tl.load(scale_ptr + group * N + n)
        second = tl.load(scale_ptr + (group + 1) * N + n)
        low, high = both_codes(w, x.dtype, PTX)
        return add_int4(add_int4(acc, low, x, first, SLICES), high, x_high, second, SLICES)
    elif FORMAT == _FP8:
        return tl.dot(float8_numbers(w, x.dtype, PTX), x, acc, input_precision="ieee")
    else:
        return tl.dot(w.to(x.dtype), x, acc, input_precision="ieee")


@triton.jit
def finish(acc, acc_up, scale, up_scale, residual, x_ptr, y_ptr, n, m, M, N, K, eps,
           NORM: tl.constexpr, SWIGLU: tl.constexpr, ROWS: tl.constexpr):  # fmt: skip
    acc, acc_up = acc * scale, acc_up * up_scale
    if NORM:
        factor = tl.rsqrt(sums_of_squares(x_ptr, M, K, ROWS, m.shape[0]) / K + eps)[None, :]
        acc, acc_up = acc * factor, acc_up * factor
    if SWIGLU:
        acc = acc * tl.sigmoid(acc) * acc_up
    acc += residual
    inside = (n[:, None] < N) & (m[None, :] < M)
    tl.store(y_ptr + m[None, :] * N + n[:, None], acc.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "blocks", "parts"])
def few_rows_kernel(
    x_ptr, w_ptr, scale_ptr, up_ptr, up_scale_ptr, norm_ptr, residual_ptr, y_ptr, part_ptr, count_ptr,
    M, N, K, row, blocks, parts, eps,
    FORMAT: tl.constexpr, GROUP: tl.constexpr, NORM: tl.constexpr, RESIDUAL: tl.constexpr, SWIGLU: tl.constexpr,
    ROWS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SLICES: tl.constexpr, BLOCK_K: tl.constexpr,
    SPLIT: tl.constexpr, EVEN: tl.constexpr, PTX: tl.constexpr,
):  # fmt: skip
    """Program parts · i + j adds part j of K to tile i. x: (M, K); w and up: (N, row), of which a block reads
    SLICES · BLOCK_K columns, which for int4 are twice as many inputs; part: parts · (1 + SWIGLU) tiles per tile; count:
    one number per tile, 0 before and after a launch. ROWS ≥ M. EVEN: blocks end with K. PTX: for NVIDIA's GPUs."""
    tile, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    n, m = tile * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_M)
    acc = tl.zeros((BLOCK_N, BLOCK_M) if SLICES == 1 else (SLICES, BLOCK_N, BLOCK_M), tl.float32)
    acc_up = acc
    inner_n = n % N  # rows beyond the last are computed again, and not stored
    # What the end needs is loaded first, and arrives during the loop, but for the rows of x, whose registers the loop
    # needs. Every program computes their sums of squares: inside the loop they would cross the threads in every step.
    scale, up_scale, residual = 1.0, 1.0, 0.0
    if FORMAT == _INT8 or FORMAT == _FP8:
        scale = tl.load(scale_ptr + inner_n)[:, None]
        if SWIGLU:
            up_scale = tl.load(up_scale_ptr + inner_n)[:, None]
    if RESIDUAL:
        place = residual_ptr + m[None, :] * N + inner_n[:, None]
        residual = tl.load(place, mask=m[None, :] < M, other=0.0).to(tl.float32)
    for block in range(blocks * part // parts, blocks * (part + 1) // parts):
        slices = block
        if SLICES > 1:
            slices = block * SLICES + tl.arange(0, SLICES)[:, None]
        first = slices * BLOCK_K
        x_high = 0
        if FORMAT == _INT4:
            first += first // GROUP * GROUP  # two groups share their bytes
            second = first + GROUP + tl.arange(0, BLOCK_K)
            x_high = load_x(x_ptr, norm_ptr, m, second, M, K, NORM, SLICES, EVEN)
        k = first + tl.arange(0, BLOCK_K)
        x = load_x(x_ptr, norm_ptr, m, k, M, K, NORM, SLICES, EVEN)
        acc = add_block(acc, x, x_high, w_ptr, scale_ptr, inner_n, slices, N, row,
                        FORMAT, GROUP, SLICES, BLOCK_K, EVEN, PTX)  # fmt: skip
        if SWIGLU:
            acc_up = add_block(acc_up, x, x_high, up_ptr, up_scale_ptr, inner_n, slices, N, row,
                               FORMAT, GROUP, SLICES, BLOCK_K, EVEN, PTX)  # fmt: skip
    if SLICES > 1:
        acc, acc_up = tl.sum(acc, axis=0), tl.sum(acc_up, axis=0)
    if not SPLIT:
        finish(acc, acc_up, scale, up_scale, residual, x_ptr, y_ptr, n, m, M, N, K, eps, NORM, SWIGLU, ROWS)
    else:
        SIZE: tl.constexpr = BLOCK_N * BLOCK_M
        each: tl.constexpr = (2 if SWIGLU else 1) * SIZE
        inner = tl.arange(0, BLOCK_N)[:, None] * BLOCK_M + m[None, :]
        mine = part_ptr + (tile * parts + part) * each
        tl.store(mine + inner, acc)
        if SWIGLU:
            tl.store(mine + SIZE + inner, acc_up)
        tl.debug_barrier()  # all threads have stored their part before one of them counts it
        arrived = tl.atomic_add(count_ptr + tile, 1, sem="acq_rel")
        if arrived == parts - 1:
            acc = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
            acc_up = tl.zeros((BLOCK_N, BLOCK_M), tl.float32)
            for other in range(parts):
                its = part_ptr + (tile * parts + other) * each
                acc += tl.load(its + inner, cache_modifier=".cg")
                if SWIGLU:
                    acc_up += tl.load(its + SIZE + inner, cache_modifier=".cg")
            tl.store(count_ptr + tile, 0)
            finish(acc, acc_up, scale, up_scale, residual, x_ptr, y_ptr, n, m, M, N, K, eps, NORM, SWIGLU, ROWS)
