"""Lab 00, exercise 3: the sum of each row. One program per row loops over blocks of columns and adds in float32."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_sum_kernel(x_ptr, y_ptr, N, stride_m, stride_n, BLOCK: tl.constexpr):
    """Program i computes y[i], the sum of the N elements of row i of X."""
    # 1. Where does this program's row start? x_ptr + row · stride_m.
    # 2. BLOCK zeros to accumulate in, tl.float32 for any dtype of X: tl.zeros((BLOCK,), dtype=…).
    # 3. A loop over the row, BLOCK columns at a time: load them masked, other=0.0, and add them.
    # 4. tl.sum(accumulator) is one number: store it at y_ptr + row.
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * stride_m + columns * stride_n, mask=columns < N, other=0.0)
    tl.store(y_ptr + row, tl.sum(total))
    ### END SOLUTION


def row_sum(x, BLOCK=128):
    """Return the sum of each row, in float32, (M,).

    x: (M, N), M and N ≥ 1, float16 or float32, any strides.
    """
    M, N = x.shape
    y = torch.empty(M, dtype=torch.float32, device=x.device)
    row_sum_kernel[(M,)](x, y, N, *x.stride(), BLOCK=BLOCK)
    return y
