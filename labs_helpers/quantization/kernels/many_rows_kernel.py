"""Kernels for products with many rows: the product with a weight that is dequantized inside of the loop over K, or with
8-bit activations, and the dequantization of a whole weight into a buffer.

The product is that of gemm/kernels/portable.py, with the weight as A and xᵀ as B: yᵀ = W · xᵀ. Tensor cores take A from
registers, right after its conversion, and B only from shared memory, on Hopper.
"""

from __future__ import annotations

import triton
import triton.language as tl

from labs_helpers.gemm.kernels.portable import add_products, offsets
from labs_helpers.quantization.kernels.few_rows_kernel import offset, whole_numbers


@triton.jit
def load_scales(scale_ptr, zero_ptr, group, n, N):
    """Return the scales and zero points of one group."""
    place = group * N + n
    return tl.load(scale_ptr + place, mask=n < N, other=0.0), tl.load(zero_ptr + place, mask=n < N, other=0)


@triton.jit
def scaled_codes(codes, scale, zero, dtype: tl.constexpr):
    """Return scale · (code − zero) in `dtype`, rounded once, for int4 codes (n, k) of one group."""
    w = whole_numbers(codes, dtype) - (zero.to(tl.float32) + offset(dtype)).to(dtype)[:, None]  # exact
    if dtype == tl.bfloat16:
        return w * scale[:, None]
    else:
        # A T4 converts no bfloat16, whose bits are the upper half of a float32.
        wide = (scale.to(tl.int16, bitcast=True).to(tl.int32) << 16).to(tl.float32, bitcast=True)
        return (w.to(tl.float32) * wide[:, None]).to(dtype)


@triton.jit
def add_int4_products(
    acc, w_ptr, scale_ptr, zero_ptr, x_ptr, n, m, N, M, K, row, GROUP: tl.constexpr, BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
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
        scale, zero = load_scales(scale_ptr, zero_ptr, 2 * pair, n, N)
        scale_high, zero_high = load_scales(scale_ptr, zero_ptr, 2 * pair + 1, n, N)
        w = tl.load(w_tile + start)
        x = tl.load(x_tile + first)
        x_high = tl.load(x_tile + first + GROUP, mask=first + GROUP + i[:, None] < K, other=0.0)
        acc = tl.dot(scaled_codes(w & 15, scale, zero, dtype), x, acc, input_precision=PRECISION)
        acc = tl.dot(scaled_codes(w >> 4, scale_high, zero_high, dtype), x_high, acc, input_precision=PRECISION)
    return acc


@triton.jit(do_not_specialize=["M"])
def many_rows_kernel(
    w_ptr, scale_ptr, zero_ptr, x_ptr, x_scale_ptr, y_ptr, N, K, row, M,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, GROUP: tl.constexpr,
    ROUNDED: tl.constexpr, PRECISION: tl.constexpr, EVEN_K: tl.constexpr, WIDE: tl.constexpr, IMPRECISE: tl.constexpr,
):  # fmt: skip
    """One tile of yᵀ: BLOCK_M outputs by BLOCK_N rows of x. w: (N, row), GROUP its group if it is int4, else 0; x:
    (M, K), with a scale per row if ROUNDED; y: (M, N). Other constants: see portable.py."""
    n, m = offsets(tl.program_id(0), N, M, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    ACC: tl.constexpr = tl.int32 if x_ptr.dtype.element_ty == tl.int8 else tl.float32
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    if GROUP > 0:
        acc = add_int4_products(acc, w_ptr, scale_ptr, zero_ptr, x_ptr, n, m, N, M, K, row, GROUP, BLOCK_K, PRECISION)
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
    w_ptr, scale_ptr, zero_ptr, out_ptr, N, K, row, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr
):
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
        scale, zero = load_scales(scale_ptr, zero_ptr, 2 * pair, n, N)
        tl.store(out + k, scaled_codes(codes & 15, scale, zero, dtype), mask=inside)
        scale, zero = load_scales(scale_ptr, zero_ptr, 2 * pair + 1, n, N)
        tl.store(out + k + GROUP, scaled_codes(codes >> 4, scale, zero, dtype), mask=inside & (k + GROUP < K))
    else:
        scale = tl.load(scale_ptr + n, mask=n < N, other=0.0)[:, None]
        tl.store(out + i[None, :], (codes.to(tl.float32) * scale).to(dtype), mask=inside)
