"""All three gradients in one kernel with five matrix products instead of seven; many programs add to dQ."""

import torch
import triton
import triton.language as tl


@triton.jit
def one_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    do_ptr,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    dk_ptr,
    dv_ptr,
    Lq,
    Lk,
    scale,
    CAUSAL: tl.constexpr,
    D: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BACKWARDS: tl.constexpr,
):
    """Program (j, h) computes key tile j of head h's dK and dV, and adds to the query tiles of dQ along its loop."""
    LOG2E: tl.constexpr = 1.4426950408889634  # exp(x) = exp2(x · log2(e))
    head, tile_number = tl.program_id(1), tl.program_id(0)
    if BACKWARDS:
        tile_number = tl.num_programs(0) - 1 - tile_number
    first = tile_number * BLOCK_N
    columns, d = first + tl.arange(0, BLOCK_N), tl.arange(0, D)
    real = columns < Lk
    tile = (head * Lk + columns)[:, None] * D + d[None, :]
    k = tl.load(k_ptr + tile, mask=real[:, None], other=0.0)
    v = tl.load(v_ptr + tile, mask=real[:, None], other=0.0)
    dk = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    begin = 0
    if CAUSAL:
        begin = tl.maximum(first - (Lk - Lq), 0) // BLOCK_M * BLOCK_M
    for start in range(begin, Lq, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        queries = (head * Lq + rows)[:, None] * D + d[None, :]
        q = tl.load(q_ptr + queries, mask=rows[:, None] < Lq, other=0.0)
        do = tl.load(do_ptr + queries, mask=rows[:, None] < Lq, other=0.0)
        lse = tl.load(lse_ptr + head * Lq + rows, mask=rows < Lq, other=0.0)
        delta = tl.load(delta_ptr + head * Lq + rows, mask=rows < Lq, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        p = tl.exp2((s - lse[:, None]) * LOG2E)
        seen = (rows[:, None] < Lq) & real[None, :]
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None] + Lk - Lq)
        p = tl.where(seen, p, 0.0)
        dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="ieee")
        dp = tl.dot(do, tl.trans(v), input_precision="ieee")
        ds = (p * (dp - delta[:, None])).to(q.dtype)
        dk = tl.dot(tl.trans(ds), q, dk, input_precision="ieee")
        # The program of another key tile may be adding to the same rows at this moment.
        part = scale * tl.dot(ds, k, input_precision="ieee")
        tl.atomic_add(dq_ptr + queries, part, mask=rows[:, None] < Lq)
    tl.store(dk_ptr + tile, (scale * dk).to(dk_ptr.dtype.element_ty), mask=real[:, None])
    tl.store(dv_ptr + tile, dv.to(dv_ptr.dtype.element_ty), mask=real[:, None])


def one_kernel_gradients(
    q, k, v, do, lse, delta, scale, causal=False, BLOCK_M=64, BLOCK_N=64, backwards=False, **options
):
    """Return attention's (dQ, dK, dV); dQ is in float32. Operands and options are as in query_gradient.

    backwards: process the key tiles from the last to the first, as a GPU might.
    """
    (B, H, Lq, D), Lk = q.shape, k.shape[2]
    dq = torch.zeros(q.shape, dtype=torch.float32, device=q.device)
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    grid = (triton.cdiv(Lk, BLOCK_N), B * H)
    one_kernel[grid](
        q,
        k,
        v,
        do,
        lse,
        delta,
        dq,
        dk,
        dv,
        Lq,
        Lk,
        scale,
        CAUSAL=causal,
        D=D,
        BLOCK_M=BLOCK_M,
        BLOCK_N=BLOCK_N,
        BACKWARDS=backwards,
        **options,
    )
    return dq, dk, dv


def added_up_query_gradient(*operands, **keywords):
    """Return only dQ of one_kernel_gradients, to count its writers."""
    return one_kernel_gradients(*operands, **keywords)[0]
