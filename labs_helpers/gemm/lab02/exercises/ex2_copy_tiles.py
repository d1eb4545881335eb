"""Lab 02, exercise 2: from a program's id to its tile's rows and columns."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_tiles_kernel(x_ptr, y_ptr, stride_xm, stride_xn, stride_ym, stride_yn,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, j) copies tile (i, j) of X, BLOCK_M × BLOCK_N elements, to Y."""
    # 1. Where is this program in the grid? tl.program_id(0) is the tile row, (1) the tile column.
    # 2. Its rows and its columns: two blocks of indices, made with tl.arange.
    # 3. A block of pointers: base + row · row stride + column · column stride.
    # 4. One tl.load, one tl.store.
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_tile = x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn
    y_tile = y_ptr + rows[:, None] * stride_ym + columns[None, :] * stride_yn
    tl.store(y_tile, tl.load(x_tile))
    ### END SOLUTION


def copy_tiles(x, BLOCK_M=32, BLOCK_N=64):
    """A copy of x, tile by tile. x: (M, N), multiples of BLOCK_M and BLOCK_N, any strides."""
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (M // BLOCK_M, N // BLOCK_N)
    copy_tiles_kernel[grid](x, y, *x.stride(), *y.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return y
