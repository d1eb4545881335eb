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

DENSE, INT8, INT4, FP8 = 0, 1, 2, 3  # the formats of a weight; a kernel reads the copies below
_DENSE, _INT4, _FP8 = tl.constexpr(DENSE), tl.constexpr(INT4), tl.constexpr(FP8)


@triton.jit
def whole_numbers(codes, dtype: tl.constexpr):
    """Return codes from 0 to 15 plus `offset(dtype)`: set below the implicit bit of a number with units of 1 they need
    no conversion instruction."""
    if dtype == tl.bfloat16:
        return (codes.to(tl.int16) | 0x4300).to(tl.bfloat16, bitcast=True)
    elif dtype == tl.float16:
        return (codes.to(tl.int16) | 0x6400).to(tl.float16, bitcast=True)
    else:
        return codes.to(dtype)


@triton.jit
def both_codes(pairs, dtype: tl.constexpr, PTX: tl.constexpr):
    """Return `whole_numbers` of the lower and of the upper four bits of bytes.

    Four bytes at a time in PTX: eight instructions for eight codes, where byte arithmetic takes three times as many.
    """
    if PTX and dtype == tl.bfloat16:
        return tl.inline_asm_elementwise(
            """{
            .reg .b32 a, b, c, d;
            prmt.b32 a, $4, 0, 0x4140;
            prmt.b32 b, $4, 0, 0x4342;
            lop3.b32 $0, a, 0x000f000f, 0x43004300, 0xea;
            lop3.b32 $1, b, 0x000f000f, 0x43004300, 0xea;
            shr.u32 c, a, 4;
            shr.u32 d, b, 4;
            lop3.b32 $2, c, 0x000f000f, 0x43004300, 0xea;
            lop3.b32 $3, d, 0x000f000f, 0x43004300, 0xea;
            }""",
            "=r,=r,=r,=r,r",
            [pairs],
            dtype=(tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=4,
        )
    else:
        return whole_numbers(pairs & 15, dtype), whole_numbers(pairs >> 4, dtype)


@triton.jit
def offset(dtype: tl.constexpr):
    return 128.0 if dtype == tl.bfloat16 else (1024.0 if dtype == tl.float16 else 0.0)


@triton.jit
def float8_numbers(codes, dtype: tl.constexpr, PTX: tl.constexpr):
    """Return the values of e4m3 codes in bytes. For bfloat16: the bits one place further in, times the difference of
    the exponents' biases, 2¹²⁰, because the GPU converts float8 to float16 alone. The code of NaN becomes 480."""
    if PTX and dtype == tl.bfloat16:
        shifted = tl.inline_asm_elementwise(
            """{
            .reg .b32 a, b, c, d;
            prmt.b32 a, $2, 0, 0x1404;
            prmt.b32 b, $2, 0, 0x3424;
            shr.u32 c, a, 4;
            shr.u32 d, b, 4;
            lop3.b32 c, c, 0x07f007f0, 0, 0xc0;
            lop3.b32 d, d, 0x07f007f0, 0, 0xc0;
            lop3.b32 $0, a, 0x80008000, c, 0xea;
            lop3.b32 $1, b, 0x80008000, d, 0xea;
            }""",
            "=r,=r,r",
            [codes],
            dtype=tl.bfloat16,
            is_pure=True,
            pack=4,
        )
        return shifted * (2.0**120)
    else:
        return codes.to(tl.float8e4nv, bitcast=True).to(dtype)


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
def sums_of_squares(x_ptr, m, M, K):
    """Return each row's sum of squares. Programs compute it again, but from L2, and after their last load of W: sums
    inside the loop over K would cross the threads in every step."""
    BLOCK: tl.constexpr = 8192 // m.shape[0]
    squares = tl.zeros((m.shape[0], BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        squares += x.to(tl.float32) * x.to(tl.float32)
    return tl.sum(squares, axis=1)


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
def finish(acc, acc_up, x_ptr, scale_ptr, up_scale_ptr, residual_ptr, y_ptr, n, m, M, N, K, eps,
           FORMAT: tl.constexpr, NORM: tl.constexpr, RESIDUAL: tl.constexpr, SWIGLU: tl.constexpr):  # fmt: skip
    if FORMAT != _DENSE and FORMAT != _INT4:
        acc *= tl.load(scale_ptr + n, mask=n < N, other=0.0)[:, None]
        if SWIGLU:
            acc_up *= tl.load(up_scale_ptr + n, mask=n < N, other=0.0)[:, None]
    if NORM:
        factor = tl.rsqrt(sums_of_squares(x_ptr, m, M, K) / K + eps)[None, :]
        acc *= factor
        acc_up *= factor
    if SWIGLU:
        acc = acc * tl.sigmoid(acc) * acc_up
    inside = (n[:, None] < N) & (m[None, :] < M)
    place = m[None, :] * N + n[:, None]
    if RESIDUAL:
        acc += tl.load(residual_ptr + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + place, acc.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["M", "blocks", "parts"])
def few_rows_kernel(
    x_ptr, w_ptr, scale_ptr, up_ptr, up_scale_ptr, norm_ptr, residual_ptr, y_ptr, part_ptr, count_ptr,
    M, N, K, row, blocks, parts, eps,
    FORMAT: tl.constexpr, GROUP: tl.constexpr, NORM: tl.constexpr, RESIDUAL: tl.constexpr, SWIGLU: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, SLICES: tl.constexpr, BLOCK_K: tl.constexpr, SPLIT: tl.constexpr,
    DEPENDENT: tl.constexpr, AHEAD: tl.constexpr, EVEN: tl.constexpr, PTX: tl.constexpr,
):  # fmt: skip
    """Program parts · i + j adds part j of K to tile i. x: (M, K); w and up: (N, row), of which a block reads
    SLICES · BLOCK_K columns, which for int4 are twice as many inputs; part: parts · (1 + SWIGLU) tiles per tile; count:
    one number per tile, 0 before and after a launch. DEPENDENT: see compile/dependent_launch.py; the program asks L2
    for AHEAD bytes of each of its rows of w and up before it waits, since no kernel writes them."""
    tile, part = tl.program_id(0) // parts, tl.program_id(0) % parts
    n, m = tile * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_M)
    if DEPENDENT:
        if AHEAD > 0:
            first = blocks * part // parts * SLICES * BLOCK_K
            prefetch(w_ptr + first, tile, N, row, BLOCK_N, AHEAD)
            if SWIGLU:
                prefetch(up_ptr + first, tile, N, row, BLOCK_N, AHEAD)
        tl.extra.cuda.gdc_wait()
    acc = tl.zeros((BLOCK_N, BLOCK_M) if SLICES == 1 else (SLICES, BLOCK_N, BLOCK_M), tl.float32)
    acc_up = acc
    inner_n = n % N  # rows beyond the last are computed again, and not stored
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
        acc = add_block(
            acc, x, x_high, w_ptr, scale_ptr, inner_n, slices, N, row, FORMAT, GROUP, SLICES, BLOCK_K, EVEN, PTX
        )
        if SWIGLU:
            acc_up = add_block(
                acc_up, x, x_high, up_ptr, up_scale_ptr, inner_n, slices, N, row, FORMAT, GROUP, SLICES, BLOCK_K, EVEN, PTX
            )
    if SLICES > 1:
        acc, acc_up = tl.sum(acc, axis=0), tl.sum(acc_up, axis=0)
    if DEPENDENT:  # programs that start before the last loads crowd some SMs, and leave others idle afterwards
        tl.extra.cuda.gdc_launch_dependents()
    if not SPLIT:
        finish(acc, acc_up, x_ptr, scale_ptr, up_scale_ptr, residual_ptr, y_ptr, n, m, M, N, K, eps,
               FORMAT, NORM, RESIDUAL, SWIGLU)  # fmt: skip
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
            finish(acc, acc_up, x_ptr, scale_ptr, up_scale_ptr, residual_ptr, y_ptr, n, m, M, N, K, eps,
                   FORMAT, NORM, RESIDUAL, SWIGLU)  # fmt: skip


@triton.jit
def prefetch(w_ptr, tile, N, row, BLOCK_N: tl.constexpr, AHEAD: tl.constexpr):
    """Ask L2 for AHEAD bytes from w_ptr on, in each of this tile's rows (sm_90).

    Each of 128 threads asks for another piece, a multiple of 16 bytes; with fewer pieces, threads would repeat them.
    """
    PIECES: tl.constexpr = 128 // BLOCK_N if BLOCK_N < 128 else 1
    size: tl.constexpr = AHEAD // PIECES
    piece = tl.arange(0, BLOCK_N * PIECES)
    start = w_ptr + ((tile * BLOCK_N + piece // PIECES) % N).to(tl.int64) * row
    tl.inline_asm_elementwise(
        "cp.async.bulk.prefetch.L2.global [$1], $2; mov.u32 $0, 0;",
        "=r,l,r",
        [start.to(tl.int64) + piece % PIECES * size, tl.full((BLOCK_N * PIECES,), size, tl.int32)],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )
