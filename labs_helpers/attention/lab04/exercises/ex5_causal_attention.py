"""Lab 04, exercise 5: causal attention of any length, which skips the tiles that no query sees."""

import torch
import triton
import triton.language as tl


@triton.jit
def causal_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, H, Lq, Lk, scale,
                            stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
                            stride_vb, stride_vh, stride_vn,
                            D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, b·H + h) computes query tile i; query r sees the keys up to r + Lk − Lq."""
    LOG2E: tl.constexpr = 1.4426950408889634
    first, d, head = tl.program_id(0) * BLOCK_M, tl.arange(0, D), tl.program_id(1)
    rows, b, h = first + tl.arange(0, BLOCK_M), head // H, head % H
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :],
                mask=rows[:, None] < Lq, other=0.0)
    k_head = k_ptr + b * stride_kb + h * stride_kh
    v_head = v_ptr + b * stride_vb + h * stride_vh
    m_i, l_i = tl.full((BLOCK_M,), -float("inf"), tl.float32), tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    # 1. No row of this program sees key `end` or any later key. Every row sees all keys before
    #    `full`. `end` is at most Lk. It may be negative, and then the program visits no tile.
    # 2. Repeat the loop of exercise 4, with K and V masked at Lk. Where a tile extends past `full`,
    #    set the scores of unseen keys to −inf. A row that has seen no key yet has m_i = −inf.
    ### BEGIN SOLUTION
    end = tl.minimum(first + BLOCK_M + Lk - Lq, Lk)
    full = first + 1 + Lk - Lq
    for start in range(0, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_head + columns[:, None] * stride_kn + d[None, :], mask=columns[:, None] < Lk, other=0.0)
        v = tl.load(v_head + columns[:, None] * stride_vn + d[None, :], mask=columns[:, None] < Lk, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2E)
        if start + BLOCK_N > full:
            s = tl.where(columns[None, :] <= rows[:, None] + Lk - Lq, s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        p = tl.exp2(s - shift[:, None])
        factor = tl.exp2(m_i - shift)
        l_i = l_i * factor + tl.sum(p, axis=1)
        acc = acc * factor[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m_i = m_new
    ### END SOLUTION
    o_tile = o_ptr + (head * Lq + rows[:, None]) * D + d[None, :]
    # 3. Store the rows below Lq. A row that saw no key has l_i = 0: store O = 0 and lse = −inf.
    ### BEGIN SOLUTION
    l_i = tl.where(l_i == 0.0, 1.0, l_i)
    o = acc / l_i[:, None]
    tl.store(o_tile, o.to(o_ptr.dtype.element_ty), mask=rows[:, None] < Lq)
    tl.store(lse_ptr + head * Lq + rows, (m_i + tl.log2(l_i)) / LOG2E, mask=rows < Lq)
    ### END SOLUTION


def causal_attention(q, k, v, scale, BLOCK_M=64, BLOCK_N=64):
    """Compute attention in which query r sees keys 0 … r + Lk − Lq.

    q: (B, H, Lq, D); k, v: (B, H, Lk, D), for any Lq and Lk ≥ 1. D, the strides and the results
    (o, lse) are as in tile_attention.
    """
    B, H, Lq, D = q.shape
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(Lq, BLOCK_M), B * H)
    causal_attention_kernel[grid](q, k, v, o, lse, H, Lq, k.shape[2], scale, *q.stride()[:3],
                                  *k.stride()[:3], *v.stride()[:3],
                                  D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return o, lse
