"""Launch products of few rows: y = x·Wᵀ with RMSNorm before it, and a sum or SwiGLU after it, in one launch."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor

from labs_helpers.compile.counters import counters
from labs_helpers.compile.dependent_launch import can_depend, dependent_options
from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.transformer.kernels.few_rows_kernel import few_rows_kernel

MOST_ROWS = 64
DTYPES = (torch.float16, torch.bfloat16, torch.float32)
FETCHED = 16 * 2**20  # bytes of W that all programs together fetch ahead, a third of an H200's L2


@dataclass(frozen=True)
class FewRowsConfig:
    """BLOCK_N rows of W per program and BLOCK_K of K per step; SPLITS programs share these rows."""

    BLOCK_N: int
    BLOCK_K: int
    SPLITS: int = 1
    num_warps: int = 4
    num_stages: int = 4


def default_config(M: int, N: int, K: int, matrices: int = 1) -> FewRowsConfig:
    """Return a configuration for x (M, K) and W (N, K), of which there are `matrices`: 128 programs or more if N allows
    it, without parts of K."""
    block_n = next((block for block in (128, 64, 32) if N // block >= 128), 16)
    block_k = 64 if matrices * block_n > 128 or M > 32 else 128 if block_n > 16 or M > 16 else 256
    return FewRowsConfig(block_n, block_k, 2 if matrices == 1 and block_n == 16 and K > 4096 else 1)


def few_rows(
    x: Tensor,
    w: Tensor,
    *,
    norm: Tensor | None = None,
    eps: float = 0.0,
    up: Tensor | None = None,
    residual: Tensor | None = None,
    config: FewRowsConfig | None = None,
    dependent: bool | None = None,
) -> Tensor:
    """Return y (M, N) = x·wᵀ. x: (M, K), M ≤ MOST_ROWS; w: (N, K); both contiguous, of one dtype of DTYPES.

    norm: x is RMSNorm(x) with this weight (K,) and eps. up: (N, K), y is silu(x·wᵀ) · (x·upᵀ). residual: (M, N), added.
    ValueError and TypeError name an operand that does not fit.
    """
    M, K, N = *x.shape, len(w)
    config = config or default_config(M, N, K, 1 if up is None else 2)
    key = (M, N, K, x.dtype, x.device, norm is not None, up is not None, residual is not None, eps, config, dependent)
    _check(x, w, norm, up, residual, config)
    y = x.new_empty(M, N)
    parts = done = y  # not used without parts
    if config.SPLITS > 1:
        parts = x.new_empty(config.SPLITS * M * N, dtype=torch.float32)
        done = counters(triton.cdiv(N, config.BLOCK_N), x.device)
    others = (x if norm is None else norm, w, w if up is None else up, x if residual is None else residual)
    _launch(key)(x, *others, y, parts, done)
    return y


@functools.lru_cache(1024)
def _launch(key: tuple[Any, ...]) -> TensorLaunch:
    M, N, K, dtype, _, norm, swiglu, residual, eps, config, dependent = key
    dependent = can_depend() if dependent is None else dependent
    size, part = dtype.itemsize, triton.cdiv(triton.cdiv(K, config.BLOCK_K), config.SPLITS) * config.BLOCK_K
    ahead = min(FETCHED // (N * config.SPLITS * (2 if swiglu else 1)), min(part, K - part * (config.SPLITS - 1)) * size)
    pieces = max(1, 128 // config.BLOCK_N)
    constants = {
        "NORM": norm,
        "SWIGLU": swiglu,
        "RESIDUAL": residual,
        "SPLITS": config.SPLITS,
        "EVEN": K % (config.BLOCK_K * config.SPLITS) == 0,
        "PRECISION": "ieee",
        "BLOCK_M": max(16, 1 << (M - 1).bit_length()),
        "BLOCK_N": config.BLOCK_N,
        "BLOCK_K": config.BLOCK_K,
        "DEPENDENT": dependent,
        "PREFETCH": ahead // pieces // 16 * 16 * pieces if K * size % 16 == 0 else 0,
    }
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages} | dependent_options(dependent)
    programs = triton.cdiv(N, config.BLOCK_N) * config.SPLITS
    return TensorLaunch(few_rows_kernel, programs, (M, N, K, float(eps)), constants, options)


def _check(x: Tensor, w: Tensor, norm: Any, up: Any, residual: Any, config: FewRowsConfig) -> None:
    if x.dtype not in DTYPES:
        raise TypeError(f"x is {x.dtype}; float16, bfloat16 or float32 is needed")
    M, K = x.shape
    if M > MOST_ROWS:
        raise ValueError(f"x has {M} rows; the kernel takes up to {MOST_ROWS}")
    wanted = {"w": (w, (len(w), K)), "norm": (norm, (K,)), "up": (up, w.shape), "residual": (residual, (M, len(w)))}
    for name, (tensor, shape) in {"x": (x, (M, K)), **wanted}.items():
        if tensor is None:
            continue
        if tensor.shape != shape or not tensor.is_contiguous():
            raise ValueError(f"{name} is {tuple(tensor.shape)}; contiguous {tuple(shape)} is needed")
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise TypeError(f"{name} is {tensor.dtype} on {tensor.device}, and x is {x.dtype} on {x.device}")
    if config.SPLITS > 1 and (norm is not None or up is not None):
        raise ValueError("a product with parts of K takes neither norm nor up")
