"""Lab 02, exercise 7: the reference of the transfer exercise, which students do not get."""

import torch
import triton
import triton.language as tl


@triton.jit
def silu_matmul_kernel(a_ptr, b_ptr, bias_ptr, d_ptr, M, N, K,
                       stride_am, stride_ak, stride_bk, stride_bn, stride_dm, stride_dn,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Program (i, j) computes tile (i, j) of D = SiLU(A·B + bias). SiLU(x) = x · sigmoid(x)."""
    # Write the whole kernel: rows and columns, the K loop with its masks, the epilogue, the store.
    # bias has N contiguous elements. Add element j to column j.
    ### BEGIN SOLUTION
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_tile = a_ptr + rows[:, None] * stride_am + k[None, :] * stride_ak
        b_tile = b_ptr + k[:, None] * stride_bk + columns[None, :] * stride_bn
        a = tl.load(a_tile, mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_tile, mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0).to(tl.float32)
    x = acc + bias[None, :]
    silu = x / (1.0 + tl.exp(-x))
    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
    tl.store(d_tile, silu.to(d_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))
    ### END SOLUTION


def silu_matmul(a, b, bias, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32):
    """Return SiLU(A·B + bias), (M, N), from one kernel.
    a: (M, K), b: (K, N), bias: (N,), any sizes ≥ 1, any strides of a and b.
    """
    (M, K), (_, N) = a.shape, b.shape
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    silu_matmul_kernel[grid](a, b, bias, d, M, N, K, *a.stride(), *b.stride(), *d.stride(),
                             BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return d
