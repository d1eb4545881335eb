"""Lab 02, exercise 3: compute one tile of A·B in steps along K, with a float32 accumulator."""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_matmul_kernel(a_ptr, b_ptr, d_ptr, K,
                       stride_am, stride_ak, stride_bk, stride_bn, stride_dm, stride_dn,
                       BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    """Program (i, j) computes tile (i, j) of D = A·B. M, N, K are multiples of the block sizes."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    # 1. Create an accumulator of BLOCK_M × BLOCK_N zeros, in float32 for every dtype of A and B.
    # 2. For each step of BLOCK_K along K: load BLOCK_M × BLOCK_K of A and BLOCK_K × BLOCK_N of B,
    #    and add their product: tl.dot(a, b, acc, input_precision="ieee").
    #    (By default tl.dot rounds float32 to TF32, which keeps 11 significant bits, like float16.)
    # 3. Store the tile in D's dtype, d_ptr.dtype.element_ty.
    ### BEGIN SOLUTION
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + rows[:, None] * stride_am + k[None, :] * stride_ak)
        b = tl.load(b_ptr + k[:, None] * stride_bk + columns[None, :] * stride_bn)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    d_tile = d_ptr + rows[:, None] * stride_dm + columns[None, :] * stride_dn
    tl.store(d_tile, acc.to(d_ptr.dtype.element_ty))
    ### END SOLUTION


def tile_matmul(a, b, BLOCK_M=64, BLOCK_N=64, BLOCK_K=32):
    """Return A·B, (M, N). a: (M, K), b: (K, N), multiples of the block sizes, any strides."""
    (M, K), (_, N) = a.shape, b.shape
    d = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (M // BLOCK_M, N // BLOCK_N)
    tile_matmul_kernel[grid](a, b, d, K, *a.stride(), *b.stride(), *d.stride(),
                             BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K)
    return d
