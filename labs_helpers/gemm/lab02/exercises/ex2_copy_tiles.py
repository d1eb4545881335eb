"""Lab 02, exercise 2: compute the rows and columns of a tile from the program's id."""

import torch
import triton
import triton.language as tl


@triton.jit
def copy_tiles_kernel(x_ptr, y_ptr, stride_xm, stride_xn, stride_ym, stride_yn,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, j) copies tile (i, j) of X, BLOCK_M × BLOCK_N elements, to Y."""
    # 1. Get the tile row from tl.program_id(0) and the tile column from tl.program_id(1).
    # 2. Compute the rows and the columns of the tile: two blocks of indices, with tl.arange.
    # 3. Compute a block of pointers: base + row · row stride + column · column stride.
    # 4. Use one tl.load and one tl.store.
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x_tile = x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn
    y_tile = y_ptr + rows[:, None] * stride_ym + columns[None, :] * stride_yn
    tl.store(y_tile, tl.load(x_tile))
    ### END SOLUTION


def copy_tiles(x, BLOCK_M=32, BLOCK_N=64):
    """Return a copy of x, (M, N). M and N are multiples of BLOCK_M and BLOCK_N; any strides."""
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (M // BLOCK_M, N // BLOCK_N)
    copy_tiles_kernel[grid](x, y, *x.stride(), *y.stride(), BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return y
