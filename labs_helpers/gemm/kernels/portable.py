"""Compute D = ReLU(A·B + C) for every GPU, shape and stride, in plain Triton."""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl

from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.gemm.configs import Config
from labs_helpers.gemm.kernels.tile_order import grouped_tile


@triton.jit
def offsets(pid, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP_M: tl.constexpr, WIDE: tl.constexpr):
    """Return the rows and columns of D that program `pid` computes, as 64-bit numbers if WIDE."""
    row, column = grouped_tile(pid, tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    rows = row * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = column * BLOCK_N + tl.arange(0, BLOCK_N)
    if WIDE:
        rows, columns = rows.to(tl.int64), columns.to(tl.int64)
    return rows, columns


@triton.jit
def add_products(
    acc, a_ptr, b_ptr, rows, columns, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
    BLOCK_K: tl.constexpr, PRECISION: tl.constexpr, EVEN_K: tl.constexpr, IMPRECISE: tl.constexpr = None,
):  # fmt: skip
    """Return acc plus these rows of A times these columns of B. A is converted to B's dtype after its load.

    IMPRECISE is tl.dot's max_num_imprecise_acc, for float8 on sm_90; other arguments: see `fused_matmul_kernel`.
    """
    k = tl.arange(0, BLOCK_K).to(rows.dtype)
    # Rows past the edge read row 0 .. again and are never stored, so the loop needs no mask along M and N.
    a_tile = a_ptr + (rows % M)[:, None] * stride_am + k[None, :] * stride_ak
    b_tile = b_ptr + k[:, None] * stride_bk + (columns % N)[None, :] * stride_bn
    for start in range(0, K, BLOCK_K):
        if EVEN_K:
            a = tl.load(a_tile)
            b = tl.load(b_tile)
        else:
            a = tl.load(a_tile, mask=k[None, :] < K - start, other=0.0)
            b = tl.load(b_tile, mask=k[:, None] < K - start, other=0.0)
        acc = tl.dot(
            a.to(b.dtype), b, acc, input_precision=PRECISION, max_num_imprecise_acc=IMPRECISE, out_dtype=acc.dtype
        )
        a_tile += BLOCK_K * stride_ak
        b_tile += BLOCK_K * stride_bk
    return acc


@triton.jit
def fused_matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    d_ptr,
    M,
    N,
    K,
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
    GROUP_M: tl.constexpr,
    PRECISION: tl.constexpr,
    EVEN_K: tl.constexpr,
    WIDE: tl.constexpr,
):
    """One tile of D = ReLU(A·B + C). PRECISION is tl.dot's input_precision, EVEN_K: BLOCK_K divides K,
    WIDE: some offset needs 64 bits."""
    rows, columns = offsets(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP_M, WIDE)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    acc = add_products(
        acc, a_ptr, b_ptr, rows, columns, M, N, K, stride_am, stride_ak, stride_bk, stride_bn,
        BLOCK_K, PRECISION, EVEN_K,
    )  # fmt: skip
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    c = tl.load(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, mask=inside, other=0.0)
    acc = tl.maximum(acc + c.to(tl.float32), 0.0)
    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty), mask=inside)


def portable_matmul(a, b, c, config: Config, tf32: bool = False):
    """Compute ReLU(A·B + C), (M, N), with the portable kernel, for operands that `plan.check_operands` accepts."""
    d = torch.empty(c.shape, dtype=a.dtype, device=a.device)
    look = tuple((x.shape, x.stride(), x.data_ptr() % 16) for x in (a, b, c))
    _launch_for(look, a.dtype, a.device, config, "tf32" if tf32 else "ieee")(a, b, c, d)
    return d


@functools.lru_cache(1024)
def _launch_for(look, dtype, device, config: Config, precision: str) -> TensorLaunch:
    """Return the launch of a, b, c and d. look: (shape, strides, alignment) of each of a, b and c."""
    ((M, K), *_), ((_, N), *_), _ = look
    matrices = [(shape, strides) for shape, strides, _ in look] + [((M, N), (N, 1))]
    wide = any(last_offset(*matrix) + 2**20 >= 2**31 for matrix in matrices)
    numbers = (M, N, K, *(number for _, strides in matrices for number in strides))
    keywords = config.keywords()
    options = {name: keywords.pop(name) for name in ("num_warps", "num_stages")}
    constants = keywords | {"PRECISION": precision, "EVEN_K": K % config.BLOCK_K == 0, "WIDE": wide}
    programs = triton.cdiv(M, config.BLOCK_M) * triton.cdiv(N, config.BLOCK_N)
    return TensorLaunch(fused_matmul_kernel, programs, numbers, constants, options)


def last_offset(shape, strides) -> int:
    """Return the offset of the last element from the first, in elements."""
    return sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
