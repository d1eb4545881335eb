"""Lab 12, exercise 9: the reference of the transfer exercise, which students do not get."""

import torch
import triton
import triton.language as tl


@triton.jit
def int8_cache_attention_kernel(q_ptr, k_ptr, k_scale_ptr, v_ptr, v_scale_ptr, o_ptr, bound_ptr, L,
                                D: tl.constexpr, BLOCK: tl.constexpr):
    """Program h computes o[h], (D,), and bound[h]. All tensors are contiguous."""
    # Read the cache in blocks of BLOCK positions, each number once; dequantize it in registers.
    # Keep a running maximum, sum and output in float32, as in lab 04.
    ### BEGIN SOLUTION
    head = tl.program_id(0)
    d = tl.arange(0, D)
    q = tl.load(q_ptr + head * D + d).to(tl.float32) / tl.sqrt(D * 1.0)
    largest, total, o = -float("inf"), 0.0, tl.zeros((D,), dtype=tl.float32)
    k_step, v_step, v_largest = 0.0, 0.0, 0.0
    for start in range(0, L, BLOCK):
        j = start + tl.arange(0, BLOCK)
        inside = j < L
        place = (head * L + j[:, None]) * D + d[None, :]
        k = tl.load(k_ptr + place, mask=inside[:, None], other=0).to(tl.float32)
        v = tl.load(v_ptr + place, mask=inside[:, None], other=0).to(tl.float32)
        k_scale = tl.load(k_scale_ptr + head * L + j, mask=inside, other=0.0)
        v_scale = tl.load(v_scale_ptr + head * L + j, mask=inside, other=0.0)
        scores = tl.where(inside, tl.sum(k * q[None, :], axis=1) * k_scale, -float("inf"))
        new = tl.maximum(largest, tl.max(scores))
        weights, shrink = tl.exp(scores - new), tl.exp(largest - new)
        o = o * shrink + tl.sum((weights * v_scale)[:, None] * v, axis=0)
        total = total * shrink + tl.sum(weights)
        largest = new
        k_step = tl.maximum(k_step, tl.max(k_scale))
        v_step = tl.maximum(v_step, tl.max(v_scale))
        v_largest = tl.maximum(v_largest, tl.max(tl.max(tl.abs(v), axis=1) * v_scale))
    of_score = k_step / 2 * tl.sum(tl.abs(q))
    tl.store(o_ptr + head * D + d, (o / total).to(o_ptr.dtype.element_ty))
    tl.store(bound_ptr + head, v_step / 2 + (tl.exp(2 * of_score) - 1) * v_largest)
    ### END SOLUTION


def int8_cache_attention(q, k, k_scale, v, v_scale, BLOCK=32):
    """Attend from one query per head to an int8 KV cache. Returns (o, bound): o, (H, D), in q's
    dtype; bound, float32 (H,), which |error of o| does not exceed.

    q: (H, D), D a power of 2. k, v: int8 (H, L, D), any L ≥ 1; k_scale, v_scale: float32 (H, L),
    one per position: the cached key is k · k_scale. The scores are q · key / √D.
    """
    H, L, D = k.shape
    o, bound = torch.empty_like(q), torch.empty(H, dtype=torch.float32, device=q.device)
    int8_cache_attention_kernel[(H,)](q, k, k_scale, v, v_scale, o, bound, L, D=D, BLOCK=BLOCK)
    return o, bound
