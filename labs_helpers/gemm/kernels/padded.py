"""Copy operands that TMA cannot read, or reads slowly, into rows that start at multiples of 128 bytes.

The Hopper kernel then multiplies the copies. Without copies, the kernel would load 2 bytes at a time and repeat each
slow load for every tile that needs the element: N / BLOCK_N times for A, M / BLOCK_M times for B. A copy reads each
element once. For large products, a copy also pays if rows start at multiples of 16 bytes but not of 32. L2 is read in
sectors of 32 bytes, and every second piece of such a row begins within a sector, so 128 bytes touch five sectors.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl

from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.gemm.kernels.hopper import HopperConfig, hopper_launch, why_not_row
from labs_helpers.gemm.kernels.split_k import in_eights

ROWS, COLUMNS = 8, 256  # the tile that a program copies


@triton.jit
def _copy_tile(source, target, tile, rows, columns, stride_row, stride_column, target_stride, ROWS, COLUMNS, EIGHTS):
    columns, stride_row = in_eights(columns, EIGHTS), in_eights(stride_row, EIGHTS)
    target_stride = in_eights(target_stride, EIGHTS)
    tiles = tl.cdiv(columns, COLUMNS)
    row = (tile // tiles * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    column = (tile % tiles * COLUMNS + tl.arange(0, COLUMNS)).to(tl.int64)[None, :]
    inside = (row < rows) & (column < columns)
    x = tl.load(source + row * stride_row + column * stride_column, mask=inside, other=0.0)
    tl.store(target + row * target_stride + column, x, mask=inside)


# For unaligned rows, neighboring threads should copy neighboring elements, so a warp reads and writes 64 bytes at a
# time. A compiler that knows that the copy's rows are aligned would give each thread 8 neighboring elements instead.
# The thread writes these together but reads them one by one, 16 bytes from those of the next thread, which gives a
# third of the speed on an H200.
@triton.jit(
    do_not_specialize_on_alignment=[
        f"{matrix}_{name}" for matrix in "xyz" for name in ("columns", "stride_row", "copy_stride")
    ]
)
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
    EIGHTS: tl.constexpr,
):
    """Copy up to three matrices, (rows, columns) with any strides, to rows of consecutive columns.

    Each program copies one tile of ROWS × COLUMNS, first those of x. A matrix with 0 rows has no tiles. EIGHTS: one bit
    for each of the columns and strides between rows, set if it is a multiple of 8.
    """
    tile = tl.program_id(0)
    x_tiles = tl.cdiv(x_rows, ROWS) * tl.cdiv(x_columns, COLUMNS)
    y_tiles = tl.cdiv(y_rows, ROWS) * tl.cdiv(y_columns, COLUMNS)
    if tile < x_tiles:
        _copy_tile(
            x_ptr, x_copy_ptr, tile, x_rows, x_columns, x_stride_row, x_stride_column, x_copy_stride, ROWS, COLUMNS,
            EIGHTS & 1,
        )  # fmt: skip
    elif tile < x_tiles + y_tiles:
        _copy_tile(
            y_ptr, y_copy_ptr, tile - x_tiles, y_rows, y_columns, y_stride_row, y_stride_column, y_copy_stride, ROWS,
            COLUMNS, EIGHTS & 2,
        )  # fmt: skip
    else:
        _copy_tile(
            z_ptr, z_copy_ptr, tile - x_tiles - y_tiles, z_rows, z_columns, z_stride_row, z_stride_column,
            z_copy_stride, ROWS, COLUMNS, EIGHTS & 4,
        )  # fmt: skip


def copy_rows(*pairs) -> None:
    """Copy x into y for up to three pairs (x, y) of equal shapes in one launch; each y has consecutive columns."""
    copy_launch(pairs)(*_in_order(pairs))


def copy_launch(pairs) -> TensorLaunch:
    """Return a launch that copies pairs of these shapes and strides, when it gets their tensors `_in_order`."""
    looks = ((x.shape, x.stride(), y.stride(0), x.dtype, x.device, _aligned(x), _aligned(y)) for x, y in pairs)
    return _copy_of(tuple(looks))


def _in_order(pairs) -> list:
    """List x and y of each pair, repeated to the six tensors that the kernel takes."""
    tensors = [tensor for pair in pairs for tensor in pair]
    return tensors + [tensors[0]] * (6 - len(tensors))


def _aligned(tensor) -> bool:
    return tensor.data_ptr() % 16 == 0


@functools.lru_cache(1024)
def _copy_of(looks) -> TensorLaunch:
    """Return the launch for pairs of these shapes, strides and alignments, which share one compiled kernel."""
    numbers: list[int] = []
    tiles = 0
    eights = sum(
        (strides[1] == 1 and columns % 8 == strides[0] % 8 == copy_stride % 8 == 0) << i
        for i, ((_, columns), strides, copy_stride, *_) in enumerate(looks)
    )
    for (rows, columns), strides, copy_stride, *_ in looks:
        numbers += (rows, columns, *strides, copy_stride)
        tiles += triton.cdiv(rows, ROWS) * triton.cdiv(columns, COLUMNS)
    numbers += [0] * (15 - len(numbers))
    constants = {"ROWS": ROWS, "COLUMNS": COLUMNS, "EIGHTS": eights}
    return TensorLaunch(copy_rows_kernel, tiles, tuple(numbers), constants, {})


def padded(rows: int, columns: int, dtype, device):
    """Return an uninitialized (rows, columns) tensor whose rows start at multiples of 128 bytes."""
    elements = 128 // dtype.itemsize
    pitch = -(-columns // elements) * elements
    return torch.empty_strided((rows, columns), (pitch, 1), dtype=dtype, device=device)


class PaddedProduct:
    """Compute ReLU(A·B + C) with the Hopper kernel, on copies of the operands that it cannot read.

    also: whether to copy A, and B, in any case. An instance serves operands of the same shapes and strides; its first
    call prepares the launches. A call returns (M, N), contiguous. The padding between the rows of a copy is never read,
    because TMA gives zeros beyond a matrix's shape.
    """

    def __init__(self, a, b, c, config: HopperConfig, also: tuple[bool, bool] = (False, False), launch=hopper_launch):
        wanted = (*also, False)
        self.copied = tuple(i for i, x in enumerate((a, b, c)) if wanted[i] or why_not_row(x))
        self.config, self.launch = config, launch
        # TMA can write D only if its rows start at multiples of 16 bytes.
        self.through_d = c.shape[1] % 8 > 0
        self._launches: tuple | None = None

    def __call__(self, a, b, c):
        operands, pairs = [a, b, c], []
        for i in self.copied:
            x = operands[i]
            operands[i] = copy = padded(*x.shape, x.dtype, x.device)
            pairs.append((x, copy))
        contiguous = torch.empty(c.shape, dtype=c.dtype, device=c.device)
        d = padded(*c.shape, c.dtype, c.device) if self.through_d else contiguous
        back = [(d, contiguous)]
        if self._launches is None:
            self._launches = (
                copy_launch(pairs) if pairs else None,
                self.launch(*operands, self.config, d.stride()),
                copy_launch(back) if self.through_d else None,
            )
        there, product, and_back = self._launches
        if there:
            there(*_in_order(pairs))
        product(*operands, d)
        if and_back:
            and_back(*_in_order(back))
        return contiguous


def narrow(tensor) -> bool:
    """Return whether the portable kernel must read a matrix of 16-bit floats 2 bytes at a time.

    It must if neither rows nor columns are consecutive elements that start at multiples of 16 bytes.
    """
    lines = [other for this, other in (tensor.stride(), tensor.stride()[::-1]) if this == 1]
    return not any(line * tensor.element_size() % 16 == 0 for line in lines) or tensor.data_ptr() % 16 != 0
