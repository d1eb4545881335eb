"""Kernels that run before and after the Hopper backward kernel. The first computes the row statistics and zeroes dQ;
the last rounds dQ."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["H", "L", "q_blocks", "first_delta"])
def prepare_kernel(
    o_ptr,
    do_ptr,
    lse_ptr,
    stats_ptr,
    dq_ptr,
    H,
    L,
    q_blocks,
    first_delta,
    scale,
    stride_ob,
    stride_oh,
    stride_ol,
    stride_od,
    stride_gb,
    stride_gh,
    stride_gl,
    stride_gd,
    D,
    BLOCK_M: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """Store −lse/scale and −delta of a block of queries, with delta = rowsum(o∘do), and zeros in its part of dq.

    stats: (2 · B · H · q_blocks, BLOCK_M) float32, with delta from row first_delta on. A row that sees no key or is
    past the end gets −inf, which makes its P zero. lse: (B, H, L), contiguous. One program per block and head.
    """
    block, head = tl.program_id(0) % q_blocks, (tl.program_id(0) // q_blocks).to(tl.int64)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.arange(0, BLOCK_D)
    inside = (rows[:, None] < L) & (columns[None, :] < D)
    o_tile = o_ptr + head // H * stride_ob + head % H * stride_oh + rows[:, None] * stride_ol
    do_tile = do_ptr + head // H * stride_gb + head % H * stride_gh + rows[:, None] * stride_gl
    o = tl.load(o_tile + columns[None, :] * stride_od, mask=inside, other=0.0).to(tl.float32)
    do = tl.load(do_tile + columns[None, :] * stride_gd, mask=inside, other=0.0).to(tl.float32)
    lse = tl.load(lse_ptr + head * L + rows, mask=rows < L, other=float("-inf"))
    at = head * q_blocks + block
    places = tl.arange(0, BLOCK_M)
    tl.store(stats_ptr + at * BLOCK_M + places, tl.where(lse == float("-inf"), lse, -lse / scale))
    tl.store(stats_ptr + (first_delta + at) * BLOCK_M + places, -tl.sum(o * do, 1))
    dq_tile = dq_ptr + (at * BLOCK_M + places)[:, None] * BLOCK_D + columns[None, :]
    tl.store(dq_tile, tl.zeros((BLOCK_M, BLOCK_D), tl.float32))


@triton.jit(do_not_specialize=["H", "L", "q_blocks"])
def round_kernel(sum_ptr, dq_ptr, H, L, q_blocks, scale, D, BLOCK_M: tl.constexpr, BLOCK_D: tl.constexpr):
    """Store dq = scale · sum, rounded once, with one program per block and head.

    sum: float32, each head padded to q_blocks · BLOCK_M rows of BLOCK_D. dq: (B, H, L, D), contiguous.
    """
    block, head = tl.program_id(0) % q_blocks, (tl.program_id(0) // q_blocks).to(tl.int64)
    places = tl.arange(0, BLOCK_M)
    rows = block * BLOCK_M + places
    columns = tl.arange(0, BLOCK_D)
    sums = tl.load(sum_ptr + ((head * q_blocks + block) * BLOCK_M + places)[:, None] * BLOCK_D + columns[None, :])
    inside = (rows[:, None] < L) & (columns[None, :] < D)
    tl.store(
        dq_ptr + (head * L + rows[:, None]) * D + columns[None, :],
        (sums * scale).to(dq_ptr.dtype.element_ty),
        mask=inside,
    )
