"""Lab 00, exercise 1: z = x + y, one block of elements per program, with the last block masked."""

import torch
import triton
import triton.language as tl


@triton.jit
def vector_add_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    """Program i computes elements i · BLOCK to (i + 1) · BLOCK − 1 of z = x + y, if they exist."""
    # 1. Which elements? tl.program_id(0) is i; tl.arange(0, BLOCK) is the block 0, 1, … BLOCK − 1.
    # 2. Which of them exist? A comparison with n gives the mask.
    # 3. tl.load(pointers, mask=…) of x and of y; x_ptr + elements is a block of pointers.
    # 4. One tl.store(pointers, values, mask=…).
    ### BEGIN SOLUTION
    elements = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = elements < n
    x = tl.load(x_ptr + elements, mask=exists)
    y = tl.load(y_ptr + elements, mask=exists)
    tl.store(z_ptr + elements, x + y, mask=exists)
    ### END SOLUTION


def vector_add(x, y, BLOCK=128):
    """Return x + y, (n,). x, y: (n,), n ≥ 1, contiguous in memory (stride 1)."""
    z = torch.empty_like(x)
    n = x.numel()
    grid = (triton.cdiv(n, BLOCK),)
    vector_add_kernel[grid](x, y, z, n, BLOCK=BLOCK)
    return z
