"""Lab 05, exercise 5: the reference of the transfer exercise, which students do not get."""

import torch
import triton
import triton.language as tl


def softcap_in_pytorch(q, k, v, o, lse, do, scale, cap):
    """Return (dQ, dK, dV) in plain PyTorch for P = exp(cap · tanh(scale · Q·Kᵀ / cap) − lse)."""
    ### BEGIN SOLUTION
    bent = torch.tanh(scale * q @ k.mT / cap)
    p = torch.exp(cap * bent - lse[..., None])
    delta = (o * do).sum(-1, keepdim=True)
    ds = p * (do @ v.mT - delta) * (1 - bent**2)
    return scale * ds @ k, scale * ds.mT @ q, p.mT @ do
    ### END SOLUTION


@triton.jit
def softcap_query_gradient_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
                                  Lq, Lk, scale, cap, D: tl.constexpr,
                                  BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, h) computes query tile i of head h's dQ, BLOCK_M rows. Not causal."""
    # Write the whole kernel. Use tanh(x) = 2 · sigmoid(2x) − 1, with tl.sigmoid on float32.
    ### BEGIN SOLUTION
    LOG2E: tl.constexpr = 1.4426950408889634
    head = tl.program_id(1)
    rows, d = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, D)
    real = rows < Lq
    tile = (head * Lq + rows)[:, None] * D + d[None, :]
    q = tl.load(q_ptr + tile, mask=real[:, None], other=0.0)
    do = tl.load(do_ptr + tile, mask=real[:, None], other=0.0)
    lse = tl.load(lse_ptr + head * Lq + rows, mask=real, other=0.0)
    delta = tl.load(delta_ptr + head * Lq + rows, mask=real, other=0.0)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    for start in range(0, Lk, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        keys = (head * Lk + columns)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + keys, mask=columns[:, None] < Lk, other=0.0)
        v = tl.load(v_ptr + keys, mask=columns[:, None] < Lk, other=0.0)
        bent = 2.0 * tl.sigmoid(tl.dot(q, tl.trans(k), input_precision="ieee") * (2.0 * scale / cap)) - 1.0
        p = tl.exp2((cap * bent - lse[:, None]) * LOG2E)
        p = tl.where(columns[None, :] < Lk, p, 0.0)
        dp = tl.dot(do, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None]) * (1.0 - bent * bent)
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    tl.store(dq_ptr + tile, (scale * dq).to(dq_ptr.dtype.element_ty), mask=real[:, None])
    ### END SOLUTION


def softcap_gradients(q, k, v, o, lse, do, scale, cap, BLOCK_M=64, BLOCK_N=64):
    """Return (dQ, dK, dV) of softmax(cap · tanh(scale · Q·Kᵀ / cap))·V, each like its operand.

    q, o and do: (B, H, Lq, D), k and v: (B, H, Lk, D), lse: (B, H, Lq), all contiguous. For float64
    PyTorch computes all three; for other dtypes your kernel computes dQ.
    """
    wide = [x.double() for x in (q, k, v, o, lse, do)]
    dq, dk, dv = (x.to(q.dtype) for x in softcap_in_pytorch(*wide, scale, cap))
    if q.dtype != torch.float64:
        (B, H, Lq, D), Lk = q.shape, k.shape[2]
        delta = (o.float() * do.float()).sum(-1)
        dq = torch.empty_like(q)
        grid = (triton.cdiv(Lq, BLOCK_M), B * H)
        softcap_query_gradient_kernel[grid](q, k, v, do, lse, delta, dq, Lq, Lk, scale, cap, D=D,
                                            BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
    return dq, dk, dv
