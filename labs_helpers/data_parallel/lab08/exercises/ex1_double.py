"""Lab 08, exercise 1: y = 2x, a block of elements a program."""

import torch
import triton
import triton.language as tl


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Program i computes BLOCK elements of y = 2x from i · BLOCK on, as far as they exist."""
    # 1. Which elements are this program's, and which of them exist?
    # 2. One tl.load and one tl.store, both masked.
    ### BEGIN SOLUTION
    elements = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = elements < n
    x = tl.load(x_ptr + elements, mask=exists)
    tl.store(y_ptr + elements, x + x, mask=exists)
    ### END SOLUTION


def double(x, BLOCK=128):
    """2x. x: (n,), n ≥ 1, neighbours side by side in memory (stride 1). Returns (n,)."""
    y = torch.empty_like(x)
    n = x.numel()
    double_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK=BLOCK)
    return y
