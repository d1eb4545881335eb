"""Products with many rows, y = x · Wᵀ, in plain Triton: W dequantized in the loop over K, or x in 8 bits as well; and
the dequantization of W into a buffer."""

from __future__ import annotations

import functools

import torch
import triton
from torch import Tensor

from labs_helpers.attention.configs import family
from labs_helpers.attention.kernels.hopper_launch import multiprocessors
from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.gemm.configs import Config
from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.kernels.chips import check_float8, has_ptx
from labs_helpers.quantization.kernels.many_rows_kernel import dequantize_kernel, many_rows_kernel
from labs_helpers.quantization.weights import FP8, GROUPS, Fp8Weight, Int8Weight, PairedInt4Weight

ScaledWeight = Int8Weight | Fp8Weight
Weight = ScaledWeight | PairedInt4Weight

INTERPRETED = Config(32, 32, 32, 2)
# Family → configurations from the largest tile to the smallest, as BLOCK_M outputs by BLOCK_N rows of x. The first one
# that gives nearly every SM a tile is chosen. They were compiled, not measured.
MIXED = {  # 16-bit x
    "sm_100": (
        Config(128, 128, 64, num_warps=8, num_stages=4),  # int4 in 128×256 does not fit into tensor memory
        Config(64, 64, 64, num_warps=4, num_stages=5),
    ),
    "sm_75": (Config(64, 64, 32, num_stages=2),),
    "sm_80": (Config(128, 128, 32, num_warps=8, num_stages=3), Config(64, 64, 64, num_stages=3)),
    "sm_90": (  # Triton 3.6 computes wrong sums of int8 weights with 128×256
        Config(128, 128, 64, num_warps=8, num_stages=4),
        Config(128, 64, 64, num_warps=4, num_stages=5),
        Config(64, 64, 64, num_warps=4, num_stages=5),
    ),
    "gfx942": (Config(128, 128, 32, num_warps=8, num_stages=2), Config(64, 64, 64, num_stages=2)),
}
ROUNDED = {  # 8-bit x
    "sm_75": (Config(64, 64, 64, num_stages=2),),
    "sm_80": (Config(128, 128, 64, num_warps=8, num_stages=3), Config(64, 64, 128, num_stages=3)),
    "sm_90": (  # and sm_100
        Config(128, 256, 128, num_warps=8, num_stages=3),
        Config(128, 128, 128, num_warps=8, num_stages=4),
        Config(128, 64, 128, num_warps=4, num_stages=5),
        Config(64, 64, 128, num_warps=4, num_stages=6),
    ),
    "gfx942": (Config(128, 128, 64, num_warps=8, num_stages=2), Config(64, 64, 128, num_stages=2)),
}
FILLED = 0.7  # of the SMs with a tile each


def table_for(rounded: bool, architecture: str) -> tuple[Config, ...]:
    """Return the configurations for a chip, from the largest tile to the smallest. rounded: for 8-bit x."""
    table, known = ROUNDED if rounded else MIXED, family(architecture)
    return table.get(known) or table["sm_90"]


def many_rows_config(M: int, N: int, rounded: bool, architecture: str | None, sms: int) -> Config:
    """Return the configuration for M rows and N outputs. architecture None: the interpreter."""
    if architecture is None:
        return INTERPRETED
    configs = table_for(rounded, architecture)
    return next((c for c in configs if -(-N // c.BLOCK_M) * -(-M // c.BLOCK_N) >= FILLED * sms), configs[-1])


def fused_rows(x: Tensor, weight: Weight, config: Config | None = None) -> Tensor:
    """Return x · Wᵀ, (M, N), in x's dtype, with sums in float32. Each program dequantizes the weights that it reads.

    x: (M, K) floats, contiguous. With one scale per output, codes are multiplied as they are and the sums are scaled;
    int4 weights are rounded to x's dtype. Raises ValueError for operands that do not fit together, RuntimeError for
    float8 on a chip without it, and TypeError for another kind of weight.
    """
    check(x, weight)
    y = x.new_empty(x.shape[0], weight.shape[0])
    return _multiply(x, y, y, weight, config, None)


def rounded_rows(
    codes: Tensor, codes_scale: Tensor, weight: ScaledWeight, dtype: torch.dtype, config: Config | None = None,
    fast: bool = True,
) -> Tensor:  # fmt: skip
    """Return codes_scale · codes · Wᵀ, (M, N), in `dtype`, for activations from `round_rows`.

    codes: (M, K) in the dtype of the weight's codes. int8 sums are exact, in int32, for K ≤ 133,000. float8 sums are
    float32, but Hopper's tensor cores keep about 14 bits of them; fast=False adds their sums of 32 products in full
    float32, as torch._scaled_mm does without use_fast_accum. Errors: see `fused_rows`.
    """
    check(codes, weight, codes_scale)
    result = dtype if codes.is_cuda else torch.float32  # the interpreter truncates where it converts to bfloat16
    y = torch.empty(codes.shape[0], weight.shape[0], dtype=result, device=codes.device)
    return _multiply(codes, codes_scale, y, weight, config, fast).to(dtype)


def dequantized(weight: Weight, dtype: torch.dtype) -> Tensor:
    """Return the weight, (N, K), in `dtype`, as `weight.dequantize` does, in one launch. Errors: see `fused_rows`."""
    _check_weight(weight)
    N, K = weight.shape
    out = torch.empty(N, K, dtype=dtype, device=weight.scale.device)
    starts = tuple([tensor.data_ptr() % 16 for tensor in _tensors(weight)])
    _dequantization(N, K, *_row(weight), dtype, out.device, starts)(*_tensors(weight), out)
    return out


def _row(weight: Weight) -> tuple[torch.dtype, int, int]:
    """Return the dtype of the codes, the bytes per row, and the group or 0."""
    if isinstance(weight, PairedInt4Weight):
        return weight.packed.dtype, weight.packed.shape[1], weight.group
    return weight.q.dtype, weight.q.shape[1], 0


def _tensors(weight: Weight) -> tuple[Tensor, Tensor]:
    if isinstance(weight, PairedInt4Weight):
        return weight.packed, weight.scale.view(torch.int32)  # a scale and its zero point
    return weight.q, weight.scale


def check(x: Tensor, weight: Weight, x_scale: Tensor | None = None) -> None:
    """Raise unless x, floats or with x_scale codes, and a weight fit together; errors: see `fused_rows`."""
    _check_weight(weight)
    codes, K = _tensors(weight)[0], weight.shape[1]
    if x.ndim != 2 or not x.shape[0] or x.shape[1] != K:
        raise ValueError(f"x is {tuple(x.shape)}; it has to be (M, {K}) with 1 row or more")
    if x_scale is None and not x.is_floating_point():
        raise ValueError(f"x is in {x.dtype}; floats are needed")
    if x_scale is not None and x.dtype != codes.dtype:
        raise ValueError(f"x is in {x.dtype}; {codes.dtype}, as the weight's codes, is needed")
    if x_scale is not None and (tuple(x_scale.shape) != (x.shape[0],) or x_scale.dtype != torch.float32):
        raise ValueError(f"x's scale is {tuple(x_scale.shape)} in {x_scale.dtype}; float32 ({x.shape[0]},) is needed")
    for name, tensor in {"x": x, "the weight": codes, "x's scale": x_scale}.items():
        if tensor is not None and not tensor.is_contiguous():
            raise ValueError(f"{name} is not contiguous")
        if tensor is not None and tensor.device != x.device:
            raise ValueError(f"{name} is on {tensor.device}, and x on {x.device}")


def _check_weight(weight: Weight) -> None:
    if not isinstance(weight, Weight):
        needed = "Int8Weight, Fp8Weight and PairedInt4Weight.of(weight) have kernels"
        raise TypeError(f"a weight is {type(weight).__name__}; {needed}")
    if isinstance(weight, PairedInt4Weight) and (weight.group not in GROUPS or weight.K % weight.group):
        needed = f"the group has to be one of {GROUPS}, and K its multiple"
        raise ValueError(f"an int4 weight has groups of {weight.group} and K = {weight.K}; {needed}")
    if isinstance(weight, Fp8Weight):
        check_float8()


def _multiply(
    x: Tensor, x_scale: Tensor, y: Tensor, weight: Weight, config: Config | None, fast: bool | None
) -> Tensor:
    tensors = (*_tensors(weight), x, x_scale, y)
    starts = tuple([tensor.data_ptr() % 16 for tensor in tensors])
    launch = _launch_for(*x.shape, weight.shape[0], *_row(weight), x.dtype, y.dtype, x.device, starts, config, fast)
    launch(*tensors)
    return y


@functools.lru_cache(4096)
def _launch_for(
    M: int, K: int, N: int, codes: torch.dtype, row: int, group: int, dtype: torch.dtype, result: torch.dtype,
    device: torch.device, starts: tuple[int, ...], config: Config | None, fast: bool | None,
) -> TensorLaunch:  # fmt: skip
    """Return the launch for such operands. fast: as in `rounded_rows`; None for x in floats."""
    rounded, architecture = fast is not None, None if device.type == "cpu" else this_machine().architecture
    if config is None:
        sms = 1 if architecture is None else multiprocessors(device.index)
        config = many_rows_config(M, N, rounded, architecture, sms)
    keywords = config.keywords()
    options = {name: keywords.pop(name) for name in ("num_warps", "num_stages")}
    keywords["BLOCK_K"] = block_k = min(config.BLOCK_K, group or config.BLOCK_K)
    # Offsets are up to those of x, w and y, and a block past them.
    wide = max(M * K, N * row, M * N) + 2**20 >= 2**31
    constants = keywords | {
        "GROUP": group, "ROUNDED": rounded, "PRECISION": "ieee", "EVEN_K": K % block_k == 0, "WIDE": wide,
        "IMPRECISE": 32 if fast is False and codes == FP8 else None, "PTX": has_ptx(architecture),
    }  # fmt: skip
    programs = triton.cdiv(N, config.BLOCK_M) * triton.cdiv(M, config.BLOCK_N)
    return TensorLaunch(many_rows_kernel, programs, (N, K, row, M), constants, options)


@functools.lru_cache(1024)
def _dequantization(
    N: int, K: int, codes: torch.dtype, row: int, group: int, dtype: torch.dtype, device: torch.device,
    starts: tuple[int, ...],
) -> TensorLaunch:  # fmt: skip
    block_n, block_k = (32, group) if group else (16, 256)
    ptx = has_ptx(None if device.type == "cpu" else this_machine().architecture)
    constants = {"BLOCK_N": block_n, "BLOCK_K": block_k, "GROUP": group, "PTX": ptx}
    programs = triton.cdiv(N, block_n) * triton.cdiv(row, block_k)
    return TensorLaunch(dequantize_kernel, programs, (N, K, row), constants, {"num_warps": 4})
