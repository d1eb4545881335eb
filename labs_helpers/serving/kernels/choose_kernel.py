"""Choose the next token of rows with different temperatures, top-k and top-p, in one launch of a program per row."""

import triton
import triton.language as tl

from labs_helpers.transformer.kernels.sample_kernel import inverse, kth_largest, ordered


@triton.jit(do_not_specialize=["V"])
def choose_kernel(
    logits_ptr,
    u_ptr,
    temperature_ptr,
    top_k_ptr,
    top_p_ptr,
    chosen_ptr,
    V,
    stride_logits,
    BLOCK_V: tl.constexpr,
):
    """Store a token per row in `chosen`, (B,) of int64.

    logits: (B, V), any float. u, temperature, top_p: (B,), float32; top_k: (B,), int32, 0 for all tokens. Temperature 0
    takes the first of the largest logits. Tokens that equal the last of the top k or the top p stay. BLOCK_V ≥ V.
    """
    row = tl.program_id(0).to(tl.int64)
    v = tl.arange(0, BLOCK_V)
    exists = v < V
    stored = tl.load(logits_ptr + row * stride_logits + v, mask=exists, other=float("-inf"))
    logits = stored.to(tl.float32)
    temperature = tl.load(temperature_ptr + row)
    if temperature == 0.0:
        token = tl.argmax(logits, 0)
    else:
        keys = ordered(stored)
        top_k, top_p = tl.load(top_k_ptr + row), tl.load(top_p_ptr + row)
        if (top_k > 0) & (top_k < V):
            exists = exists & (keys >= kth_largest(keys, top_k))
        p = tl.exp2((logits - tl.max(logits, 0)) * (1.4426950408889634 / temperature))  # log2(e)
        p = tl.where(exists, p, 0.0)
        if top_p < 1.0:
            p = tl.where(keys >= key_of_share(keys, p, top_p), p, 0.0)
        token = inverse(p, tl.load(u_ptr + row), v)
    tl.store(chosen_ptr + row, tl.minimum(token, V - 1).to(tl.int64))  # of NaN, the padding may be largest


@triton.jit
def key_of_share(keys, p, share):
    """Return the largest of the int32 keys that, with all larger ones, hold this share of Σp, by bisection."""
    enough = share * tl.sum(p, 0)
    low, high = tl.min(keys, 0).to(tl.int64), tl.max(keys, 0).to(tl.int64)
    while low < high:  # the keys from `low` on hold enough, and those from high + 1 on do not
        middle = low + (high - low + 1) // 2
        if tl.sum(tl.where(keys >= middle.to(tl.int32), p, 0.0), 0) >= enough:
            low = middle
        else:
            high = middle - 1
    return low.to(tl.int32)
