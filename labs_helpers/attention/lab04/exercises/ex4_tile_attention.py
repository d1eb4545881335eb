"""Lab 04, exercise 4: attention tile by tile, without an L×L matrix in memory."""

import torch
import triton
import triton.language as tl


@triton.jit
def tile_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, H, Lq, Lk, scale,
                          stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
                          stride_vb, stride_vh, stride_vn,
                          D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, b·H + h) computes query tile i of O and lse, for head h of batch b."""
    LOG2E: tl.constexpr = 1.4426950408889634
    d, head = tl.arange(0, D), tl.program_id(1)
    rows, b, h = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), head // H, head % H
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :])
    k_head = k_ptr + b * stride_kb + h * stride_kh
    v_head = v_ptr + b * stride_vb + h * stride_vh
    m_i, l_i = tl.full((BLOCK_M,), -float("inf"), tl.float32), tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    for start in range(0, Lk, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        # 1. Load the tiles of K and V, BLOCK_N × D each.
        # 2. Multiply tl.dot(q, tl.trans(k), input_precision="ieee") by scale and LOG2E.
        # 3. Compute each row's new maximum, p = exp2(scores − maximum), and the old part's factor.
        # 4. Rescale l_i and add. Rescale acc and add: tl.dot(p.to(v.dtype), v, acc, …). Keep m_new.
        ### BEGIN SOLUTION
        k = tl.load(k_head + columns[:, None] * stride_kn + d[None, :])
        v = tl.load(v_head + columns[:, None] * stride_vn + d[None, :])
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2E)
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        p = tl.exp2(s - m_new[:, None])
        factor = tl.exp2(m_i - m_new)
        l_i = l_i * factor + tl.sum(p, axis=1)
        acc = acc * factor[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m_i = m_new
        ### END SOLUTION
    o_tile = o_ptr + (head * Lq + rows[:, None]) * D + d[None, :]
    # 5. Divide by l_i and store O in its dtype. At lse_ptr + head * Lq + rows, store the natural
    #    logarithm of Σ exp(scores). Note that m_i is in base 2.
    ### BEGIN SOLUTION
    o = acc / l_i[:, None]
    tl.store(o_tile, o.to(o_ptr.dtype.element_ty))
    tl.store(lse_ptr + head * Lq + rows, (m_i + tl.log2(l_i)) / LOG2E)
    ### END SOLUTION


def tile_attention(q, k, v, scale, BLOCK_M=64, BLOCK_N=64):
    """Compute softmax(scale · Q·Kᵀ)·V for q: (B, H, Lq, D) and k, v: (B, H, Lk, D).

    D is a power of two ≥ 16, Lq a multiple of BLOCK_M, Lk of BLOCK_N. Only the last stride has to
    be 1. Returns o, like q, and lse, the log-sum-exp of each row, float32, (B, H, Lq).
    """
    B, H, Lq, D = q.shape
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    grid = (Lq // BLOCK_M, B * H)
    tile_attention_kernel[grid](q, k, v, o, lse, H, Lq, k.shape[2], scale, *q.stride()[:3],
                                *k.stride()[:3], *v.stride()[:3],
                                D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return o, lse
