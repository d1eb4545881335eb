"""Lab 08, exercise 2: the reference of the transfer exercise, which students do not get."""

import torch
import triton
import triton.language as tl


@triton.jit
def scale_and_add_kernel(a, x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    """Program i computes BLOCK elements of z = a·x + y from i · BLOCK on, as far as they exist."""
    # The whole kernel is yours.
    ### BEGIN SOLUTION
    elements = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = elements < n
    x = tl.load(x_ptr + elements, mask=exists)
    y = tl.load(y_ptr + elements, mask=exists)
    tl.store(z_ptr + elements, a * x + y, mask=exists)
    ### END SOLUTION


def scale_and_add(a, x, y, BLOCK=128):
    """a·x + y. a: a number; x, y: (n,), n ≥ 1, neighbours side by side in memory. Returns (n,)."""
    z = torch.empty_like(x)
    n = x.numel()
    scale_and_add_kernel[(triton.cdiv(n, BLOCK),)](a, x, y, z, n, BLOCK=BLOCK)
    return z
