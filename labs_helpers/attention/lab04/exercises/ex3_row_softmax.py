"""Lab 04, exercise 3: a softmax that reads each row in blocks and keeps a running maximum and sum."""

import torch
import triton
import triton.language as tl


@triton.jit
def row_softmax_kernel(x_ptr, y_ptr, N, stride_xm, stride_xn, stride_ym, stride_yn,
                       BLOCK: tl.constexpr):
    """Program i computes the softmax of row i of X and reads the row twice."""
    x_row = x_ptr + tl.program_id(0) * stride_xm
    y_row = y_ptr + tl.program_id(0) * stride_ym
    m_i = -float("inf")  # the largest element so far
    l_i = 0.0  # Σ exp(x − m_i) over the elements so far
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        # 1. Load the block in float32. For which value past the end does exp return 0?
        # 2. Compute the new maximum with tl.max over the block and tl.maximum with the old one.
        # 3. Rescale l_i, add the block's Σ exp, and keep the new maximum. While all elements
        #    so far are −inf, subtract 0 instead of the maximum, because −inf − (−inf) is NaN.
        ### BEGIN SOLUTION
        x = tl.load(x_row + columns * stride_xn, mask=columns < N, other=-float("inf")).to(tl.float32)
        m_new = tl.maximum(m_i, tl.max(x))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        l_i = l_i * tl.exp(m_i - shift) + tl.sum(tl.exp(x - shift))
        m_i = m_new
        ### END SOLUTION
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        # 4. Read the block again and store exp(x − m_i) / l_i in Y's dtype, with a mask.
        ### BEGIN SOLUTION
        x = tl.load(x_row + columns * stride_xn, mask=columns < N, other=-float("inf")).to(tl.float32)
        y = tl.exp(x - m_i) / l_i
        tl.store(y_row + columns * stride_yn, y.to(y_ptr.dtype.element_ty), mask=columns < N)
        ### END SOLUTION


def row_softmax(x, BLOCK=128):
    """Return the softmax of each row of x, (M, N), for any sizes ≥ 1 and any strides."""
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    row_softmax_kernel[(M,)](x, y, N, *x.stride(), *y.stride(), BLOCK=BLOCK)
    return y
