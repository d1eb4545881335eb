"""Lab 12, exercise 3: a kernel that reads int8 weights and multiplies in float16 (W8A16)."""

import torch
import triton
import triton.language as tl


@triton.jit
def int8_linear_kernel(x_ptr, q_ptr, scale_ptr, y_ptr, M, N, K,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Program j computes columns j · BLOCK_N to (j + 1) · BLOCK_N − 1 of y, in all M rows.

    x (M, K), q (N, K) and y (M, N) are contiguous, row by row. M ≤ BLOCK_M.
    """
    rows = tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # 1. Loop over K in steps of BLOCK_K. Load a tile of x, (BLOCK_M, BLOCK_K), and one of q,
    #    transposed, (BLOCK_K, BLOCK_N). Rows, columns and k that do not exist load as 0.
    # 2. Convert the tile of q to x's dtype, and add its product to acc. Give tl.dot
    #    input_precision="ieee".
    # 3. After the loop, multiply each column of acc by its scale, in float32.
    # 4. Store the result in y's dtype.
    ### BEGIN SOLUTION
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        x = tl.load(x_ptr + rows[:, None] * K + k[None, :],
                    mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        q = tl.load(q_ptr + columns[None, :] * K + k[:, None],
                    mask=(columns[None, :] < N) & (k[:, None] < K), other=0)
        acc = tl.dot(x, q.to(x.dtype), acc, input_precision="ieee")
    scale = tl.load(scale_ptr + columns, mask=columns < N, other=0.0)
    y = acc * scale[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    y_tile = y_ptr + rows[:, None] * N + columns[None, :]
    tl.store(y_tile, y.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


def int8_linear(x, q, scale, BLOCK_M=16, BLOCK_N=64, BLOCK_K=64):
    """Return y = x · (q · scale)ᵀ, (M, N), in x's dtype.
    x: (M, K), M ≤ BLOCK_M; q: int8 (N, K); scale: float32 (N,); all contiguous.
    """
    (M, K), N = x.shape, len(q)
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, BLOCK_N),)
    int8_linear_kernel[grid](x, q, scale, y, M, N, K,
                             BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return y
