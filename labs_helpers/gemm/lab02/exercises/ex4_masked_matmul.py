"""Lab 02, exercise 4: compute A·B for any M, N and K, with a mask at each edge."""

import torch
import triton
import triton.language as tl


@triton.jit
def masked_matmul_kernel(a_ptr, b_ptr, d_ptr, M, N, K,
                         stride_am, stride_ak, stride_bk, stride_bn, stride_dm, stride_dn,
                         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Program (i, j) computes tile (i, j) of D = A·B; tiles may extend past any edge."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a_tile = a_ptr + rows[:, None] * stride_am + k[None, :] * stride_ak
        b_tile = b_ptr + k[:, None] * stride_bk + columns[None, :] * stride_bn
        # 1. Load a and b. mask=… selects the elements that exist; the others become other=….
        #    Each tile can extend past two edges. Which value for other leaves the sum unchanged?
        ### BEGIN SOLUTION
        a = tl.load(a_tile, mask=(rows[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_tile, mask=(k[:, None] < K) & (columns[None, :] < N), other=0.0)
        ### END SOLUTION
        acc = tl.dot(a, b, acc, input_precision="ieee")
    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
    # 2. Store acc in D's dtype, but only where D has an element.
    ### BEGIN SOLUTION
    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty), mask=(rows[:, None] < M) & (columns[None, :] < N))
    ### END SOLUTION


def masked_matmul(a, b, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32):
    """Return A·B, (M, N). a: (M, K), b: (K, N), any sizes ≥ 1, any strides."""
    (M, K), (_, N) = a.shape, b.shape
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    masked_matmul_kernel[grid](a, b, d, M, N, K, *a.stride(), *b.stride(), *d.stride(),
                               BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return d
