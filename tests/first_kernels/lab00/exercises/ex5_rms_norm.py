"""Lab 00, exercise 5: the reference of the transfer exercise, which students do not get."""

import torch
import triton
import triton.language as tl


@triton.jit
def rms_norm_kernel(x_ptr, y_ptr, N, stride_xm, stride_xn, stride_ym, stride_yn, eps,
                    BLOCK: tl.constexpr):
    """Program i normalizes row i: y = x / sqrt(mean(x²) + eps); the mean is over N elements."""
    # Write the whole kernel. It must know the mean before it can write the first element,
    # so it reads a row longer than BLOCK twice. Compute in float32 for any dtype of X; store in
    # Y's: y_ptr.dtype.element_ty.
    ### BEGIN SOLUTION
    row = tl.program_id(0)
    squares = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=0.0).to(tl.float32)
        squares += x * x
    rms = tl.sqrt(tl.sum(squares) / N + eps)
    for start in range(0, N, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + columns * stride_xn, mask=columns < N, other=0.0).to(tl.float32)
        y = (x / rms).to(y_ptr.dtype.element_ty)
        tl.store(y_ptr + row * stride_ym + columns * stride_yn, y, mask=columns < N)
    ### END SOLUTION


def rms_norm(x, eps=1e-6, BLOCK=128):
    """Return each row divided by its root mean square, (M, N) in x's dtype.

    x: (M, N), M and N ≥ 1, float16 or float32, any strides.
    """
    M, N = x.shape
    y = torch.empty((M, N), dtype=x.dtype, device=x.device)
    rms_norm_kernel[(M,)](x, y, N, *x.stride(), *y.stride(), eps, BLOCK=BLOCK)
    return y
