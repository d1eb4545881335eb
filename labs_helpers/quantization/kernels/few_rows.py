"""Products with few rows, y = x · Wᵀ for at most 64 rows of x and a weight in any format, in one launch."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from labs_helpers.attention.configs import family
from labs_helpers.attention.kernels.decode import choose_splits
from labs_helpers.attention.kernels.hopper_launch import multiprocessors
from labs_helpers.compile.counters import counters
from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.measure.machine import this_machine
from labs_helpers.quantization.kernels import MOST_ROWS
from labs_helpers.quantization.kernels.chips import has_ptx
from labs_helpers.quantization.kernels.codes import DENSE, FP8, INT4, INT8
from labs_helpers.quantization.kernels.few_rows_kernel import few_rows_kernel
from labs_helpers.quantization.weights import Fp8Weight, Int8Weight, PairedInt4Weight

MOST_PARTS = 16
Weight = Tensor | Int8Weight | Fp8Weight | PairedInt4Weight


@dataclass(frozen=True)
class FewRowsConfig:
    """BLOCK_N outputs per program; SLICES of BLOCK_K columns of the stored weight per step (int4: at most its
    group), one per warp, or a single one that the warps share by rows; num_warps and num_stages as in Triton; the
    number of programs that one SM is to run at a time; and the least rows of x per tile, 16 for Triton 3.2 and
    for AMD's matrix instructions."""

    BLOCK_N: int
    SLICES: int
    BLOCK_K: int
    num_warps: int
    num_stages: int
    programs: int
    LEAST_M: int = 8


_INTERPRETED = FewRowsConfig(16, 2, 32, 4, 1, 1)
SLICED = 16  # rows up to which each warp takes a slice of K; with more, the warps would read too much of x


@dataclass(frozen=True)
class _Stored:
    """What the kernel reads of a weight. group: columns per step that the format fixes, or 0."""

    format: int
    N: int
    K: int
    codes: Tensor
    scale: Tensor | None = None
    group: int = 0


def stored(weight: Weight) -> _Stored:
    """Return the tensors of a weight. Raises TypeError for an object that is no weight of a known format."""
    if isinstance(weight, Tensor):
        return _Stored(DENSE, *weight.shape, weight)
    if isinstance(weight, Int8Weight):
        return _Stored(INT8, *weight.shape, weight.q, weight.scale)
    if isinstance(weight, Fp8Weight):
        return _Stored(FP8, *weight.shape, weight.q.view(torch.uint8), weight.scale)
    if isinstance(weight, PairedInt4Weight):
        return _Stored(INT4, *weight.shape, weight.packed, weight.scale.view(torch.int32), weight.group)
    raise TypeError(f"a weight is {type(weight).__name__}; int4 weights are read as PairedInt4Weight.of(weight)")


def few_rows_config(
    M: int, N: int, item_bytes: float, swiglu: bool, architecture: str | None, sms: int
) -> FewRowsConfig:
    """Return the configuration for M rows and N outputs. item_bytes: what a weight takes in memory for each of its
    numbers, 0.5 for int4. architecture None: the interpreter. Measured on an H200."""
    if architecture is None:
        return _INTERPRETED
    known, column_bytes = family(architecture), item_bytes * (2 if swiglu else 1)
    small, dense = known in ("sm_75", "gfx942"), column_bytes >= 2
    wide_k, least = 128 if known == "sm_90" else 64, 16 if small else 8
    if M > SLICED or M > SLICED // 2 and dense and N >= 60 * sms:
        stages = 2 if small or column_bytes > 4 else 5 if column_bytes == 2 and N <= 64 * sms else 3
        return FewRowsConfig(32 if small else 64, 1, wide_k, 4, stages, 1 if dense else 2, least)
    if M <= SLICED // 2 and N <= 16 * sms and not swiglu and not small:
        # At most one program per SM, which alone has to keep enough loads in flight.
        if item_bytes < 1:
            return FewRowsConfig(16, 4, 64, 4, 4, 1)
        return FewRowsConfig(16, 4, wide_k, 4, 5 if item_bytes <= 2 else 3, 1)  # float32 would not fit everywhere
    # Enough warps for an SM's loads: two per tile of 32 outputs where there are many tiles, otherwise more warps per
    # tile, and then smaller tiles.
    block_n, warps = (32, 2) if N >= 96 * sms else (32, 4) if N >= 48 * column_bytes * sms else (16, 4)
    block_k = 32 if small else 64 if item_bytes >= 2 and (swiglu or block_n * warps == 64) else wide_k
    if M <= SLICED // 2 and item_bytes < 1 and swiglu:
        block_n, warps, block_k = 32, 2, 32 if small else 64
    return FewRowsConfig(block_n, warps, block_k, warps, 2 if small else 3, 1, least)


def few_rows(
    x: Tensor,
    weight: Weight,
    *,
    norm: Tensor | None = None,
    eps: float = 1e-5,
    residual: Tensor | None = None,
    up: Weight | None = None,
    config: FewRowsConfig | None = None,
    parts: int | None = None,
) -> Tensor:
    """Return x · Wᵀ, (M, N), in x's dtype, with sums in float32.

    x: (M, K) with M ≤ 64, contiguous. weight: a matrix (N, K) in x's dtype, or a quantized weight. norm: the weight
    (K,) of an RMSNorm of x. residual: (M, N), added to the result. up: a second weight; the result is then
    silu(x · Wᵀ) · (x · upᵀ), as in SwiGLU. config, parts of K: by default chosen from the sizes.
    Raises ValueError for operands that do not fit together, TypeError for another kind of weight.
    """
    return _launch_for(x, weight, norm, residual, up, config, parts)(x, weight, norm, eps, residual, up)


def _launch_for(
    x: Tensor, weight: Weight, norm: Tensor | None, residual: Tensor | None, up: Weight | None,
    config: FewRowsConfig | None, parts: int | None,
) -> FewRowsLaunch:  # fmt: skip
    of = stored(weight)
    _check(x, of, norm, residual, None if up is None else stored(up))
    return _launches(
        *x.shape, of.N, of.format, of.group, of.codes.shape[1], of.codes.dtype, x.dtype, x.device, norm is not None,
        residual is not None, up is not None, config, parts,
    )  # fmt: skip


def _check(x: Tensor, of: _Stored, norm: Tensor | None, residual: Tensor | None, up: _Stored | None) -> None:
    if x.ndim != 2 or not 1 <= x.shape[0] <= MOST_ROWS or x.shape[1] != of.K:
        raise ValueError(f"x is {tuple(x.shape)}; it has to be (M, {of.K}) with 1 to {MOST_ROWS} rows")
    if of.format == DENSE and of.codes.dtype != x.dtype:
        raise ValueError(f"the weight is in {of.codes.dtype}, and x in {x.dtype}")
    if up is not None and (up.N, up.K, up.format, up.group) != (of.N, of.K, of.format, of.group):
        raise ValueError(f"up is {up.N} × {up.K}; it has to have the weight's shape, {of.N} × {of.K}, and format")
    for name, tensor, shape in (("norm", norm, (of.K,)), ("residual", residual, (x.shape[0], of.N))):
        if tensor is not None and tuple(tensor.shape) != shape:
            raise ValueError(f"{name} is {tuple(tensor.shape)}; it has to be {shape}")
    given = {"x": x, "the weight": of.codes, "norm": norm, "residual": residual, "up": up and up.codes}
    for name, tensor in given.items():
        if tensor is not None and not tensor.is_contiguous():
            raise ValueError(f"{name} is not contiguous")
        if tensor is not None and tensor.device != x.device:
            raise ValueError(f"{name} is on {tensor.device}, and x on {x.device}")


class FewRowsLaunch:
    """A launch for fixed sizes, formats and dtypes; calls with such operands are not checked again."""

    def __init__(
        self, M: int, K: int, N: int, format: int, group: int, row: int, stored_as: torch.dtype, dtype: torch.dtype,
        device: torch.device, norm: bool, residual: bool, swiglu: bool, config: FewRowsConfig | None,
        parts: int | None,
    ) -> None:  # fmt: skip
        architecture = None if device.type == "cpu" else this_machine().architecture
        sms = 1 if architecture is None else multiprocessors(device.index)
        config = config or few_rows_config(M, N, row * stored_as.itemsize / K, swiglu, architecture, sms)
        block_k = min(group or config.BLOCK_K, config.BLOCK_K)
        tiles, blocks = -(-N // config.BLOCK_N), -(-row // (config.SLICES * block_k))
        if parts is None:
            parts = choose_splits(tiles, blocks, config.programs * sms)
        self.parts, self.tiles = max(1, min(parts, blocks, MOST_PARTS)), tiles
        self.shape, self.device = (M, N), device
        block_m = max(config.LEAST_M, 1 << (M - 1).bit_length())
        each = (2 if swiglu else 1) * config.BLOCK_N * block_m
        self.workspace = self.parts * tiles * each if self.parts > 1 else 0
        even = row % (config.SLICES * block_k) == 0 and K == row * (2 if format == INT4 else 1)  # no odd last group
        constants = {
            "FORMAT": format, "GROUP": group, "NORM": norm, "RESIDUAL": residual, "SWIGLU": swiglu,
            "ROWS": 1 << (M - 1).bit_length(), "BLOCK_M": block_m, "BLOCK_N": config.BLOCK_N, "SLICES": config.SLICES,
            "BLOCK_K": block_k, "SPLIT": self.parts > 1, "EVEN": even, "PTX": has_ptx(architecture),
        }  # fmt: skip
        options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
        self.numbers, self.constants, self.options = (M, N, K, row, blocks, self.parts), constants, options
        self.launches: dict[float, TensorLaunch] = {}

    def __call__(
        self, x: Tensor, weight: Weight, norm: Tensor | None, eps: float, residual: Tensor | None, up: Weight | None
    ) -> Tensor:
        of = stored(weight)
        other = of if up is None else stored(up)
        y = x.new_empty(self.shape)
        part = count = y
        if self.workspace:
            part = torch.empty(self.workspace, dtype=torch.float32, device=self.device)
            count = counters(self.tiles, self.device)
        launch = self.launches.get(eps)
        if launch is None:
            launch = self.launches[eps] = TensorLaunch(
                few_rows_kernel, self.tiles * self.parts, (*self.numbers, eps), self.constants, self.options
            )
        scales = [y if scale is None else scale for scale in (of.scale, other.scale)]
        launch(
            x, of.codes, scales[0], other.codes, scales[1], y if norm is None else norm,
            y if residual is None else residual, y, part, count,
        )  # fmt: skip
        return y


_launches = functools.lru_cache(4096)(FewRowsLaunch)
