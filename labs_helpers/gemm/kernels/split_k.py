"""Compute D = ReLU(A·B + C) with several programs per tile, each of which sums a part of K.

This pays if D has fewer tiles than the GPU can run at a time, as in decoding, where A has a few rows and the kernel
reads all of B once. Each program writes its part of the sum, in float32, to a workspace. The tile's counter tells which
program finishes last; this program adds the parts in a fixed order, so the result does not depend on the timing. The
idea is from Osama et al., "Stream-K" (PPoPP 2023), §2.
"""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass

import torch
import triton
import triton.language as tl

from labs_helpers.compile.counters import counters
from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.gemm.kernels.portable import last_offset
from labs_helpers.gemm.time_model import Shape, Tiling, worth_splitting

MOST_ROWS = (
    16  # the most rows for which the plan considers this kernel instead of Hopper's, whose tiles have 64 rows or more
)
SHARED_SM = 233_472  # bytes per SM, compute capability 9.0


@dataclass(frozen=True)
class SplitConfig:
    """A configuration: BLOCK_* in elements; SPLITS programs per tile, each with BLOCK_K·⌈K / BLOCK_K / SPLITS⌉ of K."""

    BLOCK_M: int
    BLOCK_N: int
    BLOCK_K: int
    SPLITS: int = 1
    num_warps: int = 4
    num_stages: int = 4

    def keywords(self) -> dict[str, int]:
        """Return the launch's keywords, which do not include SPLITS."""
        return {name: value for name, value in asdict(self).items() if name != "SPLITS"}

    @property
    def tiling(self) -> Tiling:
        """Return the configuration as the time model sees it; shared memory limits how many programs fit on an SM."""
        stage = 2 * (self.BLOCK_M + self.BLOCK_N) * self.BLOCK_K
        an_sm = min(SHARED_SM // (self.num_stages * stage + 1024), 4)
        return Tiling(self.BLOCK_M, self.BLOCK_N, self.BLOCK_K, max(an_sm, 1))

    def parts(self, shape: Shape, multiprocessors: int) -> list[int]:
        """Return the SPLITS to consider for (M, N, K)."""
        return worth_splitting(self.tiling, shape, multiprocessors)


@triton.jit
def in_eights(x, KNOWN: tl.constexpr):
    """Return x in a form that tells the compiler that it is a multiple of 8, if KNOWN.

    For an argument, the compiler tests only divisibility by 16. Without this hint it would load rows that start at
    multiples of 8 elements, which are 16 bytes, element by element.
    """
    if KNOWN:
        x = x // 8 * 8
    return x


# One compiled kernel serves all sizes: EIGHTS holds what the compiler must know of sizes and strides.
@triton.jit(
    do_not_specialize=["M", "N", "K", "splits", "steps"],
    do_not_specialize_on_alignment=[
        *("stride_am", "stride_ak", "stride_bk", "stride_bn"),
        *("stride_cm", "stride_cn", "stride_dm", "stride_dn"),
    ],
)
def split_k_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    d_ptr,
    parts_ptr,
    counters_ptr,
    M,
    N,
    K,
    splits,
    steps,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    stride_dm,
    stride_dn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    EVEN_K: tl.constexpr,
    WIDE: tl.constexpr,
    EIGHTS: tl.constexpr,
):
    """Each program adds `steps` steps of BLOCK_K to one tile's sum; the last program of a tile stores D.

    parts: float32 (splits, tiles, BLOCK_M, BLOCK_N). counters: int32, one per tile, zero before and after. EIGHTS: one
    bit for each of N, K and the strides of A, B and C, set if it is a multiple of 8. Other arguments: see portable.py.
    """
    N, K = in_eights(N, EIGHTS & 1), in_eights(K, EIGHTS & 2)
    stride_am, stride_ak = in_eights(stride_am, EIGHTS & 4), in_eights(stride_ak, EIGHTS & 8)
    stride_bk, stride_bn = in_eights(stride_bk, EIGHTS & 16), in_eights(stride_bn, EIGHTS & 32)
    stride_cm, stride_cn = in_eights(stride_cm, EIGHTS & 64), in_eights(stride_cn, EIGHTS & 128)
    stride_dm = in_eights(stride_dm, EIGHTS & 1)
    tiles_m = tl.cdiv(M, BLOCK_M)
    tiles = tiles_m * tl.cdiv(N, BLOCK_N)
    # Programs that start together read neighboring columns of the same rows of B.
    tile = tl.program_id(0) % tiles
    split = tl.program_id(0) // tiles
    rows = tile % tiles_m * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tile // tiles_m * BLOCK_N + tl.arange(0, BLOCK_N)
    first = split * steps * BLOCK_K
    k = tl.arange(0, BLOCK_K)
    if WIDE:
        rows, columns, k, first = rows.to(tl.int64), columns.to(tl.int64), k.to(tl.int64), first.to(tl.int64)
    a_tile = a_ptr + (rows % M)[:, None] * stride_am + (first + k)[None, :] * stride_ak
    b_tile = b_ptr + (first + k)[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(first, tl.minimum(first + steps * BLOCK_K, K), BLOCK_K):
        if EVEN_K:
            a = tl.load(a_tile)
            b = tl.load(b_tile)
        else:
            a = tl.load(a_tile, mask=k[None, :] < K - start, other=0.0)
            b = tl.load(b_tile, mask=k[:, None] < K - start, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_tile += BLOCK_K * stride_ak
        b_tile += BLOCK_K * stride_bk
    place = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    parts = parts_ptr + tile.to(tl.int64) * (BLOCK_M * BLOCK_N) + place
    stride_split = tiles.to(tl.int64) * (BLOCK_M * BLOCK_N)
    tl.store(parts + split * stride_split, acc, cache_modifier=".cg")
    # All threads' stores come before the one atomic (release), and the last program's loads after it (acquire).
    tl.debug_barrier()
    if tl.atomic_add(counters_ptr + tile, 1, sem="acq_rel") == splits - 1:
        total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for _ in range(0, splits):
            total += tl.load(parts, cache_modifier=".cg")
            parts += stride_split
        inside = (rows[:, None] < M) & (columns[None, :] < N)
        c = tl.load(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, mask=inside, other=0.0)
        total = tl.maximum(total + c.to(tl.float32), 0.0)
        d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
        tl.store(d_tile, total.to(d_ptr.dtype.element_ty), mask=inside)
        tl.store(counters_ptr + tile, 0)


def split_k_matmul(a, b, c, config: SplitConfig, tf32: bool = False):
    """Compute ReLU(A·B + C), (M, N), with several programs per tile. `plan.check_operands` must accept the operands."""
    M, N = c.shape
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    look = tuple((x.shape, x.stride(), x.data_ptr() % 16) for x in (a, b, c))
    launch, tiles, floats = _launch_for(look, a.dtype, a.device, config, "tf32" if tf32 else "ieee")
    parts = torch.empty(floats, dtype=torch.float32, device=a.device)
    launch(a, b, c, d, parts, counters(tiles, a.device))
    return d


@functools.lru_cache(1024)
def _launch_for(look, dtype, device, config: SplitConfig, precision: str) -> tuple[TensorLaunch, int, int]:
    """Return (launch of a, b, c, d, parts and counters; number of tiles; number of floats in the parts)."""
    ((M, K), *_), ((_, N), *_), _ = look
    tiles = triton.cdiv(M, config.BLOCK_M) * triton.cdiv(N, config.BLOCK_N)
    steps = triton.cdiv(triton.cdiv(K, config.BLOCK_K), config.SPLITS)
    splits = triton.cdiv(triton.cdiv(K, config.BLOCK_K), steps)  # only splits that have steps to add
    matrices = [(shape, stride) for shape, stride, _ in look] + [((M, N), (N, 1))]
    wide = any(last_offset(*matrix) + 2**20 >= 2**31 for matrix in matrices)
    numbers = (M, N, K, splits, steps, *(number for _, stride in matrices for number in stride))
    keywords = config.keywords()
    options = {name: keywords.pop(name) for name in ("num_warps", "num_stages")}
    eights = sum((x % 8 == 0) << i for i, x in enumerate((N, K, *(x for _, stride in matrices[:3] for x in stride))))
    constants = keywords | {"PRECISION": precision, "EVEN_K": K % config.BLOCK_K == 0, "WIDE": wide, "EIGHTS": eights}
    launch = TensorLaunch(split_k_kernel, tiles * splits, numbers, constants, options)
    return launch, tiles, splits * tiles * config.BLOCK_M * config.BLOCK_N


def worth_timing(M: int) -> list[SplitConfig]:
    """Return configurations for M rows, without SPLITS: one or two rows of tiles, at least 128 bytes of a row of B."""
    few = (
        SplitConfig(16, 64, 128, 1, 4, 4),
        SplitConfig(16, 64, 256, 1, 4, 3),
        SplitConfig(16, 128, 64, 1, 4, 5),
        SplitConfig(16, 128, 128, 1, 4, 4),
        SplitConfig(32, 64, 128, 1, 4, 4),
        SplitConfig(32, 128, 64, 1, 4, 5),
        SplitConfig(32, 128, 128, 1, 8, 4),
        SplitConfig(64, 64, 64, 1, 4, 5),
        SplitConfig(64, 64, 128, 1, 4, 4),
        SplitConfig(64, 128, 64, 1, 4, 4),
        SplitConfig(64, 128, 128, 1, 8, 3),
        SplitConfig(128, 64, 64, 1, 4, 4),
        SplitConfig(128, 128, 64, 1, 8, 4),
        SplitConfig(128, 256, 64, 1, 8, 3),
    )
    rows = next(block for block in (16, 32, 64, 128) if block >= min(M, 128))
    return [config for config in few if config.BLOCK_M in (rows, rows // 2)]
