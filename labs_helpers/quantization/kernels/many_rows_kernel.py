"""Kernels for products with many rows: the product with a weight that is dequantized inside of the loop over K, or with
8-bit activations, and the dequantization of a whole weight into a buffer.

The product is that of gemm/kernels/portable.py, with the weight as A and xᵀ as B: yᵀ = W · xᵀ. Tensor cores take A from
registers, right after its conversion, and B only from shared memory, on Hopper.
"""

from __future__ import annotations

import triton
import triton.language as tl

from labs_helpers.gemm.kernels.portable import add_products, offsets
from labs_helpers.quantization.kernels.codes import both_codes, offset


@triton.jit
def scaled_numbers(numbers, word, dtype: tl.constexpr):
    """Return scale · (code − zero) in `dtype`, rounded once, for the `whole_numbers` (n, k) of int4 codes of one group.

    word: each row's scale (lower half) and zero point, both in bfloat16. One load of 32 bits is copied ahead with the
    codes.
    """
    w = numbers - ((word & -65536).to(tl.float32, bitcast=True) + offset(dtype)).to(dtype)[:, None]  # exact
    if dtype == tl.bfloat16:
        return w * word.to(tl.int16).to(tl.bfloat16, bitcast=True)[:, None]
    else:
        return (w.to(tl.float32) * (word << 16).to(tl.float32, bitcast=True)[:, None]).to(dtype)


@triton.jit
def add_int4_products(
    acc, w_ptr, scale_ptr, x_ptr, n, m, N, M, K, row, GROUP: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr, PTX: tl.constexpr,
):  # fmt: skip
    """Return acc plus these rows of W times these columns of xᵀ, for a `PairedInt4Weight` of `row` bytes per row.

    BLOCK_K bytes per step, which divides GROUP; they hold codes of two groups.
    """
    dtype: tl.constexpr = x_ptr.dtype.element_ty
    i = tl.arange(0, BLOCK_K)
    w_tile = w_ptr + (n % N)[:, None] * row + i[None, :]
    x_tile = x_ptr + (m % M)[None, :] * K + i[:, None]
    for start in range(0, row, BLOCK_K):
        pair = start // GROUP
        first = start + pair * GROUP  # along K
        word = tl.load(scale_ptr + 2 * pair * N + n % N)
        word_high = tl.load(scale_ptr + (2 * pair + 1) * N + n % N)
        low, high = both_codes(tl.load(w_tile + start), dtype, PTX)
        x = tl.load(x_tile + first)
        x_high = tl.load(x_tile + first + GROUP, mask=first + GROUP + i[:, None] < K, other=0.0)
        acc = tl.dot(scaled_numbers(low, word, dtype), x, acc, input_precision=PRECISION)
        acc = tl.dot(scaled_numbers(high, word_high, dtype), x_high, acc, input_precision=PRECISION)
    return acc


@triton.jit(do_not_specialize=["M"])
def many_rows_kernel(
    w_ptr, scale_ptr, x_ptr, x_scale_ptr, y_ptr, N, K, row, M,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, GROUP: tl.constexpr,
    ROUNDED: tl.constexpr, PRECISION: tl.constexpr, EVEN_K: tl.constexpr, WIDE: tl.constexpr, IMPRECISE: tl.constexpr,
    PTX: tl.constexpr,
):  # fmt: skip
    """One tile of yᵀ: BLOCK_M outputs by BLOCK_N rows of x. w: (N, row), GROUP its group if it is int4, else 0; x:
    (M, K), with a scale per row if ROUNDED; y: (M, N). PTX: the GPU is NVIDIA's. Other constants: see portable.py."""
    n, m = offsets(tl.program_id(0), N, M, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    ACC: tl.constexpr = tl.int32 if x_ptr.dtype.element_ty == tl.int8 else tl.float32
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    if GROUP > 0:
        acc = add_int4_products(acc, w_ptr, scale_ptr, x_ptr, n, m, N, M, K, row, GROUP, BLOCK_K, PRECISION, PTX)
    else:
        acc = add_products(
            acc, w_ptr, x_ptr, n, m, N, M, K, K, 1, 1, K, BLOCK_K, PRECISION, EVEN_K, IMPRECISE
        )  # fmt: skip
        acc = acc.to(tl.float32) * tl.load(scale_ptr + n, mask=n < N, other=0.0)[:, None]
        if ROUNDED:
            acc *= tl.load(x_scale_ptr + m, mask=m < M, other=0.0)[None, :]
    inside = (n[:, None] < N) & (m[None, :] < M)
    tl.store(y_ptr + m[None, :] * N + n[:, None], acc.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def dequantize_kernel(
    w_ptr, scale_ptr, out_ptr, N, K, row,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, PTX: tl.constexpr,
):  # fmt: skip
    """Write BLOCK_N × BLOCK_K weights, (N, K), from as many codes, or with GROUP from half as many bytes of int4."""
    blocks = tl.cdiv(row, BLOCK_K)
    n = tl.program_id(0) // blocks * BLOCK_N + tl.arange(0, BLOCK_N)
    i = tl.program_id(0) % blocks * BLOCK_K + tl.arange(0, BLOCK_K)
    dtype: tl.constexpr = out_ptr.dtype.element_ty
    inside = (n[:, None] < N) & (i[None, :] < row)
    codes = tl.load(w_ptr + n[:, None].to(tl.int64) * row + i[None, :], mask=inside, other=0.0)
    out = out_ptr + n[:, None].to(tl.int64) * K
    if GROUP > 0:
        pair = tl.program_id(0) % blocks * BLOCK_K // GROUP
        k = (i + pair * GROUP)[None, :]
        low, high = both_codes(codes, dtype, PTX)
        word = tl.load(scale_ptr + 2 * pair * N + n % N)
        tl.store(out + k, scaled_numbers(low, word, dtype), mask=inside)
        word = tl.load(scale_ptr + (2 * pair + 1) * N + n % N)
        tl.store(out + k + GROUP, scaled_numbers(high, word, dtype), mask=inside & (k + GROUP < K))
    else:
        scale = tl.load(scale_ptr + n, mask=n < N, other=0.0)[:, None]
        tl.store(out + i[None, :], (codes.to(tl.float32) * scale).to(dtype), mask=inside)
