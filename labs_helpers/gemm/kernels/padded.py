"""Operands that the tensor memory accelerator cannot read are copied once, into rows that start at multiples of 16
bytes, and the Hopper kernel multiplies the copies.

The other way, loads of 2 bytes in the kernel, repeats the same slow load for every tile that needs the element:
N / BLOCK_N times for A, M / BLOCK_M times for B. A copy reads it once.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl

from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.gemm.kernels.hopper import HopperConfig, hopper_matmul, why_not_row

ROWS, COLUMNS = 16, 128  # of the tile that a program copies


@triton.jit
def _copy_tile(source, target, tile, rows, columns, stride_row, stride_column, target_stride, ROWS, COLUMNS):
    tiles = tl.cdiv(columns, COLUMNS)
    row = (tile // tiles * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile % tiles * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(source + row * stride_row + column * stride_column, mask=inside, other=0.0)
    tl.store(target + row * target_stride + column, x, mask=inside)


@triton.jit
def copy_rows_kernel(
    x_ptr,
    x_copy_ptr,
    y_ptr,
    y_copy_ptr,
    z_ptr,
    z_copy_ptr,
    x_rows,
    x_columns,
    x_stride_row,
    x_stride_column,
    x_copy_stride,
    y_rows,
    y_columns,
    y_stride_row,
    y_stride_column,
    y_copy_stride,
    z_rows,
    z_columns,
    z_stride_row,
    z_stride_column,
    z_copy_stride,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Copy up to three matrices, (rows, columns) each with any strides, to rows of consecutive columns; a program a
    tile of ROWS × COLUMNS, those of x first. One with 0 rows has no tiles."""
    tile = tl.program_id(0)
    x_tiles = tl.cdiv(x_rows, ROWS) * tl.cdiv(x_columns, COLUMNS)
    y_tiles = tl.cdiv(y_rows, ROWS) * tl.cdiv(y_columns, COLUMNS)
    if tile < x_tiles:
        _copy_tile(
            x_ptr, x_copy_ptr, tile, x_rows, x_columns, x_stride_row, x_stride_column, x_copy_stride, ROWS, COLUMNS
        )
    elif tile < x_tiles + y_tiles:
        _copy_tile(
            y_ptr, y_copy_ptr, tile - x_tiles, y_rows, y_columns, y_stride_row, y_stride_column, y_copy_stride, ROWS,
            COLUMNS,
        )  # fmt: skip
    else:
        _copy_tile(
            z_ptr, z_copy_ptr, tile - x_tiles - y_tiles, z_rows, z_columns, z_stride_row, z_stride_column,
            z_copy_stride, ROWS, COLUMNS,
        )  # fmt: skip


def copy_rows(*pairs) -> None:
    """Copy x into y for up to three pairs (x, y) of equal shapes, y with consecutive columns: one launch."""
    looks = ((x.shape, x.stride(), y.stride(0), x.dtype, x.device, _aligned(x), _aligned(y)) for x, y in pairs)
    launch = _copy_of(tuple(looks))
    tensors = [tensor for pair in pairs for tensor in pair]
    launch(*tensors, *[pairs[0][0]] * (6 - len(tensors)))


def _aligned(tensor) -> bool:
    return tensor.data_ptr() % 16 == 0


@functools.lru_cache(1024)
def _copy_of(looks) -> TensorLaunch:
    """The launch of x, y, … for pairs of these looks, for which Triton builds one kernel."""
    numbers: list[int] = []
    tiles = 0
    for (rows, columns), strides, copy_stride, *_ in looks:
        numbers += (rows, columns, *strides, copy_stride)
        tiles += triton.cdiv(rows, ROWS) * triton.cdiv(columns, COLUMNS)
    numbers += [0] * (15 - len(numbers))
    return TensorLaunch(copy_rows_kernel, tiles, tuple(numbers), {"ROWS": ROWS, "COLUMNS": COLUMNS}, {})


def padded(rows: int, columns: int, dtype, device):
    """An uninitialised (rows, columns) whose rows start at multiples of 16 bytes."""
    elements = 16 // dtype.itemsize
    return torch.empty((rows, -(-columns // elements) * elements), dtype=dtype, device=device)[:, :columns]


def padded_matmul(a, b, c, config: HopperConfig, matmul=hopper_matmul):
    """ReLU(A·B + C) by the Hopper kernel, of copies of those operands that it cannot read. Returns (M, N), contiguous.

    What lies between the rows of a copy is never read: TMA gives zeros beyond the shape that it was told.
    """
    to_copy = [(x, padded(*x.shape, x.dtype, x.device)) for x in (a, b, c) if why_not_row(x)]
    if to_copy:
        copy_rows(*to_copy)
    copies = iter([copy for _, copy in to_copy])
    a, b, c = (next(copies) if why_not_row(x) else x for x in (a, b, c))
    M, N = c.shape
    d = matmul(a, b, c, config, padded(M, N, c.dtype, c.device))
    if d.is_contiguous():
        return d
    contiguous = torch.empty((M, N), dtype=c.dtype, device=c.device)
    copy_rows((d, contiguous))
    return contiguous


def narrow(tensor) -> bool:
    """Whether the portable kernel reads a matrix of 16-bit floats 2 bytes at a time: in neither direction do lines of
    consecutive elements start at multiples of 16 bytes."""
    lines = [other for this, other in (tensor.stride(), tensor.stride()[::-1]) if this == 1]
    return not any(line * tensor.element_size() % 16 == 0 for line in lines) or tensor.data_ptr() % 16 != 0
