"""Lab 00, exercise 2: Y = Xᵀ, tile by tile. Rows, columns and strides, with masks in both directions."""

import torch
import triton
import triton.language as tl


@triton.jit
def transpose_copy_kernel(x_ptr, y_ptr, M, N, stride_xm, stride_xn, stride_yn, stride_ym,
                          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, j) copies tile (i, j) of X, BLOCK_M × BLOCK_N: Y[column, row] = X[row, column].

    The next row of X is stride_xm elements further in X and stride_ym further in Y; the next column
    is stride_xn further in X and stride_yn further in Y.
    """
    # 1. This program's rows and columns of X: program_id(0) counts tiles of rows, (1) of columns.
    # 2. Which elements of the tile exist? rows[:, None] is a column, columns[None, :] a row.
    # 3. Pointers into X, then pointers into Y: base + row · its stride + column · its stride.
    # 4. One tl.load, one tl.store, both masked.
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    exists = (rows[:, None] < M) & (columns[None, :] < N)
    x_tile = x_ptr + rows[:, None] * stride_xm + columns[None, :] * stride_xn
    y_tile = y_ptr + rows[:, None] * stride_ym + columns[None, :] * stride_yn
    tl.store(y_tile, tl.load(x_tile, mask=exists), mask=exists)
    ### END SOLUTION


def transpose_copy(x, BLOCK_M=32, BLOCK_N=32):
    """Return a contiguous copy of Xᵀ, (N, M). x: (M, N), M and N ≥ 1, any strides."""
    M, N = x.shape
    y = torch.empty((N, M), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    transpose_copy_kernel[grid](x, y, M, N, *x.stride(), *y.stride(),
                                BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return y
