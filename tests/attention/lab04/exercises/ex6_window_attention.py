"""Lab 04, exercise 6: the reference of the transfer exercise, which students do not get."""

import torch
import triton
import triton.language as tl


@triton.jit
def window_attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, H, Lq, Lk, window, scale,
                            stride_qb, stride_qh, stride_qm, stride_kb, stride_kh, stride_kn,
                            stride_vb, stride_vh, stride_vn,
                            D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, b·H + h): query r sees `window` keys, the last of which is r + Lk − Lq."""
    # Write the whole kernel. Where does the loop begin, and which tiles need a mask?
    ### BEGIN SOLUTION
    LOG2E: tl.constexpr = 1.4426950408889634
    first, d, head = tl.program_id(0) * BLOCK_M, tl.arange(0, D), tl.program_id(1)
    rows, b, h = first + tl.arange(0, BLOCK_M), head // H, head % H
    q = tl.load(q_ptr + b * stride_qb + h * stride_qh + rows[:, None] * stride_qm + d[None, :],
                mask=rows[:, None] < Lq, other=0.0)
    k_head = k_ptr + b * stride_kb + h * stride_kh
    v_head = v_ptr + b * stride_vb + h * stride_vh
    m_i, l_i = tl.full((BLOCK_M,), -float("inf"), tl.float32), tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    own = rows[:, None] + Lk - Lq  # the key at the query's own position, the last that it sees
    begin = tl.maximum(first + Lk - Lq - window + 1, 0) // BLOCK_N * BLOCK_N
    end = tl.minimum(first + BLOCK_M + Lk - Lq, Lk)
    for start in range(begin, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        k = tl.load(k_head + columns[:, None] * stride_kn + d[None, :], mask=columns[:, None] < Lk, other=0.0)
        v = tl.load(v_head + columns[:, None] * stride_vn + d[None, :], mask=columns[:, None] < Lk, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * LOG2E)
        s = tl.where((columns[None, :] <= own) & (columns[None, :] > own - window), s, -float("inf"))
        m_new = tl.maximum(m_i, tl.max(s, axis=1))
        shift = tl.where(m_new == -float("inf"), 0.0, m_new)
        p = tl.exp2(s - shift[:, None])
        factor = tl.exp2(m_i - shift)
        l_i = l_i * factor + tl.sum(p, axis=1)
        acc = acc * factor[:, None]
        acc = tl.dot(p.to(v.dtype), v, acc, input_precision="ieee")
        m_i = m_new
    l_i = tl.where(l_i == 0.0, 1.0, l_i)
    o = acc / l_i[:, None]
    o_tile = o_ptr + (head * Lq + rows[:, None]) * D + d[None, :]
    tl.store(o_tile, o.to(o_ptr.dtype.element_ty), mask=rows[:, None] < Lq)
    tl.store(lse_ptr + head * Lq + rows, (m_i + tl.log2(l_i)) / LOG2E, mask=rows < Lq)
    ### END SOLUTION


def window_attention(q, k, v, window, scale, BLOCK_M=64, BLOCK_N=64):
    """Compute attention in which query r sees keys r + Lk − Lq − window + 1 … r + Lk − Lq.

    window: int ≥ 1. The other arguments and the results (o, lse) are as in causal_attention.
    """
    B, H, Lq, D = q.shape
    o = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    lse = torch.empty((B, H, Lq), dtype=torch.float32, device=q.device)
    grid = (triton.cdiv(Lq, BLOCK_M), B * H)
    window_attention_kernel[grid](q, k, v, o, lse, H, Lq, k.shape[2], window, scale,
                                  *q.stride()[:3], *k.stride()[:3], *v.stride()[:3],
                                  D=D, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return o, lse
