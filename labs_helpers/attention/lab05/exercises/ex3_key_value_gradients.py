"""Lab 05, exercise 3: dK and dV. A program owns a tile of keys and loops over the queries from the diagonal on."""

import torch
import triton
import triton.language as tl


@triton.jit
def key_value_gradients_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
                               Lq, Lk, scale, CAUSAL: tl.constexpr, D: tl.constexpr,
                               BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (j, h) computes key tile j of head h's dK and dV, BLOCK_N rows."""
    LOG2E: tl.constexpr = 1.4426950408889634  # exp(x) = exp2(x · log2(e))
    head, first = tl.program_id(1), tl.program_id(0) * BLOCK_N
    columns, d = first + tl.arange(0, BLOCK_N), tl.arange(0, D)
    real = columns < Lk
    tile = (head * Lk + columns)[:, None] * D + d[None, :]  # the same offsets in k, v, dk, dv
    k = tl.load(k_ptr + tile, mask=real[:, None], other=0.0)
    v = tl.load(v_ptr + tile, mask=real[:, None], other=0.0)
    dk = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    dv = tl.zeros((BLOCK_N, D), dtype=tl.float32)
    # 1. Find the first query tile that sees one of these keys: tile 0 or, if CAUSAL, the tile of
    #    query first − (Lk − Lq), but never one before 0.
    # 2. Load q, do, lse and delta for each tile of BLOCK_M queries from there to Lq.
    # 3. Compute P as in exercise 2. A query past the end must add nothing.
    # 4. Add Pᵀ·dO to dV. Compute dP = dO·Vᵀ and dS = P ∘ (dP − delta), and add dSᵀ·Q to dK.
    # 5. Store both. Which of them takes the scale?
    ### BEGIN SOLUTION
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
        ds = p * (dp - delta[:, None])
        dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk, input_precision="ieee")
    tl.store(dk_ptr + tile, (scale * dk).to(dk_ptr.dtype.element_ty), mask=real[:, None])
    tl.store(dv_ptr + tile, dv.to(dv_ptr.dtype.element_ty), mask=real[:, None])
    ### END SOLUTION


def key_value_gradients(q, k, v, do, lse, delta, scale, causal=False,
                        BLOCK_M=64, BLOCK_N=64, **options):
    """Return attention's (dK, dV), like k and v. Operands and options are as in query_gradient."""
    (B, H, Lq, D), Lk = q.shape, k.shape[2]
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    grid = (triton.cdiv(Lk, BLOCK_N), B * H)
    key_value_gradients_kernel[grid](q, k, v, do, lse, delta, dk, dv,
                                     Lq, Lk, scale, CAUSAL=causal, D=D,
                                     BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, **options)
    return dk, dv
