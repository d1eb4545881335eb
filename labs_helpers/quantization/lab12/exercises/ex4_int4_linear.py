"""Lab 12, exercise 4: a kernel that reads packed int4 weights with a scale and a zero point per group (W4A16)."""

import torch
import triton
import triton.language as tl


@triton.jit
def int4_linear_kernel(x_ptr, packed_ptr, scale_ptr, zero_ptr, y_ptr, M, N, K, group,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Program j computes columns j · BLOCK_N to (j + 1) · BLOCK_N − 1 of y, in all M rows.

    All tensors are contiguous, row by row. M ≤ BLOCK_M. K is a multiple of group, and group of
    BLOCK_K, so a step of the loop stays within one group.
    """
    rows = tl.arange(0, BLOCK_M)
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    half = tl.arange(0, BLOCK_K // 2)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    # 1. Loop over K in steps of BLOCK_K. Load a tile of bytes, (BLOCK_K/2, BLOCK_N), and x's
    #    even and odd columns, two tiles (BLOCK_M, BLOCK_K/2).
    # 2. Load each column's scale and zero point of this step's group.
    # 3. Take both codes out of each byte and subtract the zero point, in float32: uint8 has no
    #    negative numbers. Convert the differences, whole numbers, to x's dtype.
    # 4. Two tl.dot give the step's product: even columns with lower codes, odd with upper.
    # 5. Multiply it by the scales in float32, add it to acc; store acc at the end in y's dtype.
    ### BEGIN SOLUTION
    for start in range(0, K, BLOCK_K):
        bytes = tl.load(packed_ptr + columns[None, :] * (K // 2) + start // 2 + half[:, None],
                        mask=columns[None, :] < N, other=0)
        even_ptr = x_ptr + rows[:, None] * K + start + 2 * half[None, :]
        even = tl.load(even_ptr, mask=rows[:, None] < M, other=0.0)
        odd = tl.load(even_ptr + 1, mask=rows[:, None] < M, other=0.0)
        place = columns * (K // group) + start // group
        scale = tl.load(scale_ptr + place, mask=columns < N, other=0.0)
        zero = tl.load(zero_ptr + place, mask=columns < N, other=0).to(tl.float32)[None, :]
        lower = ((bytes & 15).to(tl.float32) - zero).to(even.dtype)
        upper = ((bytes >> 4).to(tl.float32) - zero).to(even.dtype)
        product = tl.dot(even, lower, input_precision="ieee")
        product = tl.dot(odd, upper, product, input_precision="ieee")
        acc += product * scale[None, :]
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    y_tile = y_ptr + rows[:, None] * N + columns[None, :]
    tl.store(y_tile, acc.to(y_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


def int4_linear(x, packed, scale, zero, group, BLOCK_M=16, BLOCK_N=64, BLOCK_K=32):
    """Return y = x · wᵀ, (M, N), in x's dtype, with w = (code − zero) · scale.
    x: (M, K), M ≤ BLOCK_M; packed: uint8 (N, K/2); scale: float32, zero: uint8, (N, K/group).
    """
    (M, K), N = x.shape, len(packed)
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(N, BLOCK_N),)
    int4_linear_kernel[grid](x, packed, scale, zero, y, M, N, K, group,
                             BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return y
