"""Round activations to 8 bits with one scale per row, in one launch."""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl
from torch import Tensor

from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.quantization.kernels.chips import check_float8
from labs_helpers.quantization.weights import FP8, FP8_MAX, INT8_MAX

MOST_HELD = 16384  # values of a row that a program keeps in registers; longer rows are read twice


@triton.jit
def largest_of(x):
    """Return the largest absolute value; infinity if there is a NaN, which makes all results of its row NaN."""
    return tl.max(tl.where(x == x, tl.abs(x), float("inf")), axis=0)


@triton.jit
def store_codes(q_ptr, k, x, scale, K):
    """Store x / scale, rounded to the nearest code, with ties to even.

    Near 1.5 · 2²³ units, float32 is spaced by one unit, so adding that number rounds. The unit of e4m3 is 1/8 of the
    value's power of two, and no less than 2⁻⁹. The conversion that follows is exact: the interpreter's own rounding to
    float8 loses a carry.
    """
    v = tl.math.div_rn(x, tl.zeros_like(x) + scale)
    if q_ptr.dtype.element_ty == tl.int8:
        far = tl.full(v.shape, 12582912.0, tl.float32)
    else:
        power = (v.to(tl.int32, bitcast=True) & 0x7F800000).to(tl.float32, bitcast=True)
        far = tl.maximum(power, 0.015625) * 1572864.0
    tl.store(q_ptr + k, ((v + far) - far).to(q_ptr.dtype.element_ty), mask=k < K)


@triton.jit
def round_rows_kernel(x_ptr, q_ptr, scale_ptr, K, LARGEST: tl.constexpr, BLOCK_K: tl.constexpr, HELD: tl.constexpr):
    """One row of x, (M, K), rounded. LARGEST: the largest code. HELD: K ≤ BLOCK_K."""
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * K
    q_ptr += row * K
    k = tl.arange(0, BLOCK_K)
    x = tl.load(x_ptr + k, mask=k < K, other=0.0).to(tl.float32)
    largest = largest_of(x)
    if not HELD:
        for start in range(BLOCK_K, K, BLOCK_K):
            more = tl.load(x_ptr + start + k, mask=start + k < K, other=0.0).to(tl.float32)
            largest = tl.maximum(largest, largest_of(more))
    scale = tl.math.div_rn(tl.where(largest > 0, largest, LARGEST), tl.full((), LARGEST, tl.float32))
    tl.store(scale_ptr + row, scale)
    store_codes(q_ptr, k, x, scale, K)
    if not HELD:
        for start in range(BLOCK_K, K, BLOCK_K):
            more = tl.load(x_ptr + start + k, mask=start + k < K, other=0.0).to(tl.float32)
            store_codes(q_ptr, start + k, more, scale, K)


def round_rows(x: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Return (codes, scale) with x ≈ scale · codes: codes in `dtype`, (M, K), and scale float32 (M,).

    x: (M, K), contiguous floats. dtype: int8 or float8_e4m3fn. A row's scale is its largest absolute value over 127 or
    448, or 1 for a row of zeros. A row with an infinity or a NaN gets the scale infinity. Raises ValueError for another
    x or dtype, and RuntimeError for float8 on a chip without it.
    """
    if x.ndim != 2 or not x.is_floating_point() or not x.is_contiguous() or not x.numel():
        raise ValueError(f"x is {tuple(x.shape)}, strides {x.stride()}, {x.dtype}; contiguous floats (M, K) are needed")
    if dtype not in (torch.int8, FP8):
        raise ValueError(f"dtype is {dtype}; activations are rounded to int8 or float8_e4m3fn")
    if dtype == FP8:
        check_float8()
    codes = torch.empty(x.shape, dtype=dtype, device=x.device)
    scale = torch.empty(x.shape[0], dtype=torch.float32, device=x.device)
    _launch_for(*x.shape, x.dtype, dtype, x.device, x.data_ptr() % 16)(x, codes, scale)
    return codes, scale


@functools.lru_cache(1024)
def _launch_for(
    M: int, K: int, of: torch.dtype, dtype: torch.dtype, device: torch.device, start: int, most: int = MOST_HELD
) -> TensorLaunch:
    block = min(triton.next_power_of_2(K), most)
    largest = float(INT8_MAX if dtype == torch.int8 else FP8_MAX)
    constants = {"LARGEST": largest, "BLOCK_K": block, "HELD": block >= K}
    return TensorLaunch(round_rows_kernel, M, (K,), constants, {"num_warps": min(max(block // 1024, 1), 8)})
