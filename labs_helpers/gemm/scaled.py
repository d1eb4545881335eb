"""Multiply matrices of 8-bit codes with the Hopper kernel: D = (a_scale · A) · (b_scale · B)ᵀ, with a scale per row.

The tensor cores multiply 8-bit numbers twice as fast as 16-bit ones, and a code has half the bytes. So a product over K
codes takes about as long as one over K / 2 floats of 16 bits, whose measured time model chooses the configuration.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import torch
from torch import Tensor

from labs_helpers.gemm.kernels.hopper import FEW_ROWS, HopperConfig, gluon_fits, launch_for, why_not_row
from labs_helpers.gemm.time_model import NEITHER, TimeModel
from labs_helpers.gemm.tuned_configs import time_model
from labs_helpers.measure.machine import this_machine

CODES = (torch.int8, torch.float8_e4m3fn)
BLOCK_K = 128  # codes, which are 128 bytes: the kernel reads B's panels as one matrix only in rows of this length
MOST_CONSUMERS = 2  # with three, the scales do not fit into the registers


def why_not(a: Tensor, b: Tensor, dtype: torch.dtype, architecture: str | None) -> str | None:
    """Return why the Hopper kernel cannot multiply codes a (M, K) and b (N, K) to a D in `dtype`; None if it can."""
    if architecture != "sm_90":
        return f"the Hopper kernel needs sm_90, this is {architecture or 'the interpreter'}"
    if a.dtype not in CODES or b.dtype != a.dtype or dtype.itemsize != 2:
        return f"the kernel multiplies int8 or float8 to 16-bit floats, not {a.dtype} by {b.dtype} to {dtype}"
    if a.shape[1] <= BLOCK_K:
        return f"K is at most {BLOCK_K}: too few steps for a ring of buffers"
    for name, tensor in (("a", a), ("b", b)):
        if reason := why_not_row(tensor):
            return f"{name}{reason}"
    if b.shape[0] % 8:
        return "D's rows would not start at multiples of 16 bytes, which TMA needs: N is no multiple of 8"
    if not gluon_fits():
        return f"the Hopper kernel's Gluon is that of Triton 3.6 and 3.7, here is {this_machine().triton}"
    return None


def takes_codes(config: HopperConfig) -> bool:
    """Return whether the kernel can multiply codes with a configuration for 16-bit floats, after `for_codes`."""
    return 2 * config.BLOCK_K == BLOCK_K and config.CONSUMERS <= MOST_CONSUMERS


def for_codes(config: HopperConfig) -> HopperConfig:
    """Return the configuration whose steps have as many bytes of codes."""
    return replace(config, BLOCK_K=2 * config.BLOCK_K)


@functools.lru_cache(4096)
def scaled_config(M: int, N: int, K: int) -> HopperConfig:
    """Return the configuration with the least predicted time for (M, N, K)."""
    return promising(M, N, K, 1)[0]


def promising(M: int, N: int, K: int, count: int) -> list[HopperConfig]:
    """Return the `count` configurations with the least predicted times, each with its best SPLITS, the best first."""
    model, shape = _model("hopper_few_rows" if M <= FEW_ROWS else "hopper"), (M, N, K // 2)
    each = [replace(model, steps={c: s}).choose(shape, HopperConfig.parts, NEITHER) for c, s in model.steps.items()]
    best = sorted(each, key=lambda choice: choice.ms)[:count]
    return [for_codes(replace(choice.config, SPLITS=choice.splits)) for choice in best]


@functools.cache
def _model(kernel: str) -> TimeModel:
    model = time_model(kernel, torch.float16, this_machine().label, HopperConfig)
    assert model is not None  # an H200's is in the package
    return replace(model, steps={config: step for config, step in model.steps.items() if takes_codes(config)})


def scaled_matmul(
    a: Tensor, b: Tensor, a_scale: Tensor, b_scale: Tensor, dtype: torch.dtype, config: HopperConfig | None = None
) -> Tensor:
    """Compute D, (M, N), in `dtype`, for codes a (M, K) and b (N, K) that `why_not` accepts.

    a_scale: (M,), b_scale: (N,), float32 and contiguous. Sums of int8 are exact, in int32. Those of float8 are float32,
    of which the tensor cores keep about 14 bits, as torch._scaled_mm with use_fast_accum.
    """
    (M, K), N = a.shape, b.shape[0]
    d = torch.empty(M, N, dtype=dtype, device=a.device)
    strides = (a.stride(), b.stride(), d.stride(), d.stride())
    launch = launch_for((M, K, N), strides, a.dtype, dtype, a.device, config or scaled_config(M, N, K))
    # The launch is compiled for aligned pointers.
    scales = tuple(scale.clone() if scale.data_ptr() % 16 else scale for scale in (a_scale, b_scale))
    return launch(a, b, d, d, scales)
