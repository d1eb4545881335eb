"""Choose how a product with many rows reads a quantized weight, and compute it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.gemm.scaled import scaled_matmul, why_not
from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.kernels.many_rows import (
    ScaledWeight,
    Weight,
    check,
    dequantized,
    fused_rows,
    rounded_rows,
)
from labs_helpers.quantization.kernels.round_rows import round_rows
from labs_helpers.quantization.weights import FP8

WAYS = ("fused", "buffer")
# Rows up to which the weight is dequantized inside of the product. many_rows_study on an H200, geometric mean over its
# shapes and formats: with 128 rows this takes 0.95 of the buffer's time, with 256 rows 1.27.
MOST_FUSED = 128


def plan(M: int) -> str:
    """Return 'fused' or 'buffer', the way that `many_rows` takes for M rows."""
    return "fused" if M <= MOST_FUSED else "buffer"


def many_rows(x: Tensor, weight: Weight, way: str | None = None) -> Tensor:
    """Return x · Wᵀ, (M, N), in x's dtype, for x (M, K). Errors: see `fused_rows`.

    way: 'fused' dequantizes the weight in the loop over K, and 'buffer' into a buffer in x's dtype, which cuBLAS
    multiplies; the plan's way by default. Raises ValueError for another way.
    """
    way = way or plan(x.shape[0])
    if way not in WAYS:
        raise ValueError(f"way is {way!r}; it may be {' or '.join(WAYS)}")
    if way == "fused":
        return fused_rows(x, weight)
    return F.linear(x, dequantized(weight, x.dtype))


def rounded_product(x: Tensor, weight: ScaledWeight, fast: bool = True) -> Tensor:
    """Return x · Wᵀ, (M, N), in x's dtype, with x (M, K) rounded to the weight's 8 bits, one scale per row.

    fast: see `rounded_rows`. Raises TypeError for int4 weights; other errors: see `fused_rows`.
    """
    if not isinstance(weight, ScaledWeight):
        raise TypeError(f"a weight is {type(weight).__name__}; x is rounded for int8 and float8 weights")
    return scaled_product(*round_rows(x, weight.q.dtype), weight, x.dtype, fast)


def scaled_product(codes: Tensor, scale: Tensor, weight: ScaledWeight, dtype: torch.dtype, fast: bool = True) -> Tensor:
    """Return `rounded_rows` of the same arguments, on Hopper from its GEMM kernel if that takes them."""
    check(codes, weight, scale)
    slow = not fast and codes.dtype == FP8
    if slow or why_not(codes, weight.q, dtype, this_machine().architecture if codes.is_cuda else None):
        return rounded_rows(codes, scale, weight, dtype, fast=fast)
    return scaled_matmul(codes, weight.q, scale, weight.scale, dtype)
