"""The backward pass in one kernel with a reproducible dQ: each program adds to its own copy."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def split_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, parts_ptr, dk_ptr, dv_ptr, Lq, Lk, scale, heads,
                 CAUSAL: tl.constexpr, D: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                 SPLITS: tl.constexpr, BACKWARDS: tl.constexpr):  # fmt: skip
    """Program (s, h) processes the key tiles s, s + SPLITS, … of head h and adds to copy s of dQ.

    No other program adds to this copy, so a load, an addition and a store replace the atomics, in a fixed order.
    """
    LOG2E: tl.constexpr = 1.4426950408889634
    split, head, d = tl.program_id(0), tl.program_id(1), tl.arange(0, D)
    if BACKWARDS:
        split = SPLITS - 1 - split
    for first in range(split * BLOCK_N, Lk, SPLITS * BLOCK_N):
        columns = first + tl.arange(0, BLOCK_N)
        real = columns < Lk
        tile = (head * Lk + columns)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + tile, mask=real[:, None], other=0.0)
        v = tl.load(v_ptr + tile, mask=real[:, None], other=0.0)
        dk, dv = tl.zeros((BLOCK_N, D), dtype=tl.float32), tl.zeros((BLOCK_N, D), dtype=tl.float32)
        begin = 0
        if CAUSAL:
            begin = tl.maximum(first - (Lk - Lq), 0) // BLOCK_M * BLOCK_M
        for start in range(begin, Lq, BLOCK_M):
            rows = start + tl.arange(0, BLOCK_M)
            there = rows < Lq
            queries = (head * Lq + rows)[:, None] * D + d[None, :]
            q = tl.load(q_ptr + queries, mask=there[:, None], other=0.0)
            do = tl.load(do_ptr + queries, mask=there[:, None], other=0.0)
            lse = tl.load(lse_ptr + head * Lq + rows, mask=there, other=0.0)
            delta = tl.load(delta_ptr + head * Lq + rows, mask=there, other=0.0)
            s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
            seen = there[:, None] & real[None, :]
            if CAUSAL:
                seen = seen & (columns[None, :] <= rows[:, None] + Lk - Lq)
            p = tl.where(seen, tl.exp2((s - lse[:, None]) * LOG2E), 0.0)
            dv = tl.dot(tl.trans(p.to(do.dtype)), do, dv, input_precision="ieee")
            dp = tl.dot(do, tl.trans(v), input_precision="ieee")
            ds = (p * (dp - delta[:, None])).to(q.dtype)
            dk = tl.dot(tl.trans(ds), q, dk, input_precision="ieee")
            own = parts_ptr + split * heads * Lq * D + queries
            so_far = tl.load(own, mask=there[:, None], other=0.0)
            so_far = tl.dot(ds, k, so_far, input_precision="ieee")
            tl.store(own, so_far, mask=there[:, None])
        tl.store(dk_ptr + tile, (scale * dk).to(dk_ptr.dtype.element_ty), mask=real[:, None])
        tl.store(dv_ptr + tile, dv.to(dv_ptr.dtype.element_ty), mask=real[:, None])


def split_gradients(q, k, v, do, lse, delta, scale, causal=False, BLOCK_M=64, BLOCK_N=64, backwards=False, SPLITS=2):
    """Return attention's (dQ, dK, dV), computed with five products; dQ is in float32. Operands as in query_gradient.

    SPLITS: copies of dQ, which are summed at the end. backwards: run the programs from the last to the first.
    """
    (B, H, Lq, D), Lk = q.shape, k.shape[2]
    parts = torch.zeros((SPLITS, *q.shape), dtype=torch.float32, device=q.device)
    dk, dv = torch.empty_like(k), torch.empty_like(v)
    split_kernel[(SPLITS, B * H)](q, k, v, do, lse, delta, parts, dk, dv, Lq, Lk, scale, B * H, CAUSAL=causal, D=D,
                                  BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, SPLITS=SPLITS, BACKWARDS=backwards)  # fmt: skip
    return scale * parts.sum(0), dk, dv
