"""Operands that the tensor memory accelerator cannot read, or reads slowly, are copied once, into rows that start at
multiples of 128 bytes, and the Hopper kernel multiplies the copies.

The other way, loads of 2 bytes in the kernel, repeats the same slow load for every tile that needs the element:
N / BLOCK_N times for A, M / BLOCK_M times for B. A copy reads it once. The same holds, for large products, where rows
start at multiples of 16 bytes but not of 32: every second piece of a row begins within one of the 32-byte sectors in
which L2 is read, and 128 bytes take five of them.
"""

from __future__ import annotations

import functools

import torch
import triton
import triton.language as tl

from labs_helpers.compile.prepared_launch import TensorLaunch
from labs_helpers.gemm.kernels.hopper import HopperConfig, hopper_launch, why_not_row
from labs_helpers.gemm.kernels.split_k import in_eights

ROWS, COLUMNS = 8, 256  # of the tile that a program copies


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


# Where rows start anywhere, neighbouring threads take neighbouring elements, and a warp reads and writes 64 bytes at a
# time. A compiler that knows the copy's rows to be aligned gives a thread 8 neighbours instead, to write at once, and
# has it read them one by one, 16 bytes from the next thread's: a third of the speed on an H200.
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
    """Copy up to three matrices, (rows, columns) each with any strides, to rows of consecutive columns; a program a
    tile of ROWS × COLUMNS, those of x first. One with 0 rows has no tiles. EIGHTS: of which of the three columns and
    strides between rows are multiples of 8, a bit each."""
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
    """Copy x into y for up to three pairs (x, y) of equal shapes, y with consecutive columns: one launch."""
    copy_launch(pairs)(*_in_order(pairs))


def copy_launch(pairs) -> TensorLaunch:
    """What copies pairs that look like these, given their tensors `_in_order`."""
    looks = ((x.shape, x.stride(), y.stride(0), x.dtype, x.device, _aligned(x), _aligned(y)) for x, y in pairs)
    return _copy_of(tuple(looks))


def _in_order(pairs) -> list:
    """x, y of each pair; the kernel takes six tensors."""
    tensors = [tensor for pair in pairs for tensor in pair]
    return tensors + [tensors[0]] * (6 - len(tensors))


def _aligned(tensor) -> bool:
    return tensor.data_ptr() % 16 == 0


@functools.lru_cache(1024)
def _copy_of(looks) -> TensorLaunch:
    """The launch of x, y, … for pairs of these looks, for which Triton builds one kernel."""
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
    """An uninitialised (rows, columns) whose rows start at multiples of 128 bytes."""
    elements = 128 // dtype.itemsize
    pitch = -(-columns // elements) * elements
    return torch.empty_strided((rows, columns), (pitch, 1), dtype=dtype, device=device)


class PaddedProduct:
    """ReLU(A·B + C) by the Hopper kernel, of copies of those operands that it cannot read, and of A and B where `also`
    says so: for operands that look like these, whose launches the first call finds. A call returns (M, N), contiguous.

    What lies between the rows of a copy is never read: TMA gives zeros beyond the shape that it was told.
    """

    def __init__(self, a, b, c, config: HopperConfig, also: tuple[bool, bool] = (False, False), launch=hopper_launch):
        wanted = (*also, False)
        self.copied = tuple(i for i, x in enumerate((a, b, c)) if wanted[i] or why_not_row(x))
        self.config, self.launch = config, launch
        # TMA cannot write where D's rows have to be, unless they start at multiples of 16 bytes.
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
    """Whether the portable kernel reads a matrix of 16-bit floats 2 bytes at a time: in neither direction do lines of
    consecutive elements start at multiples of 16 bytes."""
    lines = [other for this, other in (tensor.stride(), tensor.stride()[::-1]) if this == 1]
    return not any(line * tensor.element_size() % 16 == 0 for line in lines) or tensor.data_ptr() % 16 != 0
