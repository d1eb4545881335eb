"""Lab 02, exercise 5: add C and apply the ReLU while the product is still in registers."""

import torch
import triton
import triton.language as tl


@triton.jit
def matmul_add_relu_kernel(a_ptr, b_ptr, c_ptr, d_ptr, M, N, K,
                           stride_am, stride_ak, stride_bk, stride_bn,
                           stride_cm, stride_cn, stride_dm, stride_dn,
                           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Program (i, j) computes tile (i, j) of D = ReLU(A·B + C)."""
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
    # 1. Load this program's tile of C once, and add it to acc while acc is still float32.
    # 2. Apply the ReLU with tl.maximum.
    # 3. Store once, in D's dtype.
    ### BEGIN SOLUTION
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    c = tl.load(c_ptr + rows[:, None] * stride_cm + columns[None, :] * stride_cn, mask=inside, other=0.0)
    acc = tl.maximum(acc + c, 0.0)
    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty), mask=inside)
    ### END SOLUTION


def matmul_add_relu(a, b, c, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32, **options):
    """Return ReLU(A·B + C), (M, N), from one kernel.

    a: (M, K), b: (K, N), c: (M, N), any sizes ≥ 1, any strides. options: num_warps, num_stages.
    """
    (M, K), (_, N) = a.shape, b.shape
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (triton.cdiv(M, BLOCK_M), triton.cdiv(N, BLOCK_N))
    matmul_add_relu_kernel[grid](a, b, c, d, M, N, K,
                                 *a.stride(), *b.stride(), *c.stride(), *d.stride(),
                                 BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, **options)
    return d
