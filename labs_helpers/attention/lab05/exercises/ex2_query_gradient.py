"""Lab 05, exercise 2: dQ. A program owns a tile of queries and loops over the keys up to the diagonal."""

import torch
import triton
import triton.language as tl


@triton.jit
def query_gradient_kernel(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr,
                          Lq, Lk, scale, CAUSAL: tl.constexpr, D: tl.constexpr,
                          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Program (i, h) computes query tile i of head h's dQ, BLOCK_M rows."""
    LOG2E: tl.constexpr = 1.4426950408889634  # exp(x) = exp2(x · log2(e))
    head, first = tl.program_id(1), tl.program_id(0) * BLOCK_M
    rows, d = first + tl.arange(0, BLOCK_M), tl.arange(0, D)
    real = rows < Lq
    tile = (head * Lq + rows)[:, None] * D + d[None, :]  # the same offsets in q, do and dq
    q = tl.load(q_ptr + tile, mask=real[:, None], other=0.0)
    do = tl.load(do_ptr + tile, mask=real[:, None], other=0.0)
    lse = tl.load(lse_ptr + head * Lq + rows, mask=real, other=0.0)
    delta = tl.load(delta_ptr + head * Lq + rows, mask=real, other=0.0)
    dq = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    # 1. Find the end of the loop: Lk or, if CAUSAL, the end of the keys that the last row sees.
    #    Query i sees the keys j ≤ i + Lk − Lq.
    # 2. Load k and v for each tile of BLOCK_N keys before it. The last tile may extend past Lk.
    # 3. Compute P = exp2(s · log2(e) − lse · log2(e)). Set P to 0 for keys past the end or unseen
    #    (P to 0, not s to −inf, because a query that sees no key has lse = −inf).
    # 4. Compute dP = dO·Vᵀ and dS = P ∘ (dP − delta), and add dS·K to dQ. Pass
    #    input_precision="ieee" to every tl.dot.
    # 5. Multiply dQ by the scale and store it in its dtype.
    ### BEGIN SOLUTION
    end = Lk
    if CAUSAL:
        end = tl.minimum(Lk, first + BLOCK_M + Lk - Lq)
    for start in range(0, end, BLOCK_N):
        columns = start + tl.arange(0, BLOCK_N)
        keys = (head * Lk + columns)[:, None] * D + d[None, :]
        k = tl.load(k_ptr + keys, mask=columns[:, None] < Lk, other=0.0)
        v = tl.load(v_ptr + keys, mask=columns[:, None] < Lk, other=0.0)
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        p = tl.exp2((s - lse[:, None]) * LOG2E)
        seen = columns[None, :] < Lk
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None] + Lk - Lq)
        p = tl.where(seen, p, 0.0)
        dp = tl.dot(do, tl.trans(v), input_precision="ieee")
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq, input_precision="ieee")
    tl.store(dq_ptr + tile, (scale * dq).to(dq_ptr.dtype.element_ty), mask=real[:, None])
    ### END SOLUTION


def query_gradient(q, k, v, do, lse, delta, scale, causal=False, BLOCK_M=64, BLOCK_N=64, **options):
    """Return attention's dQ, like q.

    q and do: (B, H, Lq, D), k and v: (B, H, Lk, D), lse (natural logarithm) and delta: (B, H, Lq)
    in float32, all contiguous. Lengths are any ≥ 1; D is a power of two ≥ 16. options: for the
    launch, such as num_warps.
    """
    (B, H, Lq, D), Lk = q.shape, k.shape[2]
    dq = torch.empty_like(q)
    grid = (triton.cdiv(Lq, BLOCK_M), B * H)
    query_gradient_kernel[grid](q, k, v, do, lse, delta, dq, Lq, Lk, scale, CAUSAL=causal, D=D,
                                BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, **options)
    return dq
