"""Choose the next token of a sequence from its logits, and append it, in one launch of one program per sequence."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["V", "top_k", "stride_tokens"])
def sample_kernel(
    logits_ptr,
    seed_ptr,
    lengths_ptr,
    tokens_ptr,
    current_ptr,
    V,
    top_k,
    inverse_temperature,
    stride_logits,
    stride_tokens,
    GREEDY: tl.constexpr,
    LIMITED: tl.constexpr,
    BLOCK_V: tl.constexpr,
    DEPENDENT: tl.constexpr,
):
    """Store the next token in tokens[row, length + 1] and current[row], and increase lengths[row] by one.

    logits: (B, V), any float. seed: one int64. lengths: (B,), int32. tokens: (B, positions), int64, contiguous rows.
    GREEDY: the first of the largest logits. Otherwise a token is drawn from softmax(logits · inverse_temperature), with
    LIMITED of the `top_k` largest logits and all that equal the last of these. BLOCK_V ≥ V.
    """
    if DEPENDENT:
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(0).to(tl.int64)
    v = tl.arange(0, BLOCK_V)
    stored = tl.load(logits_ptr + row * stride_logits + v, mask=v < V, other=float("-inf"))
    logits = stored.to(tl.float32)
    place = tl.load(lengths_ptr + row) + 1
    if GREEDY:
        token = tl.argmax(logits, 0)
    else:
        exists = v < V
        if LIMITED:
            exists = exists & (ordered(stored) >= kth_largest(ordered(stored), top_k))
        scaled = (logits - tl.max(logits, 0)) * (inverse_temperature * 1.4426950408889634)  # log2(e)
        p = tl.where(exists, tl.exp2(scaled), 0.0)
        # The number depends on the seed, the row and the position alone, and so neither on the batch nor on the graph.
        seed = tl.load(seed_ptr)
        zero = seed.to(tl.int32) * 0
        bits, _, _, _ = tl.philox(seed, place + zero, tl.program_id(0) + zero, zero, zero)
        u = (bits >> 8).to(tl.float32) * 5.9604644775390625e-08  # 2⁻²⁴
        token = inverse(p, u, v)
    tl.store(tokens_ptr + row * stride_tokens + place, token.to(tl.int64))
    tl.store(current_ptr + row, token.to(tl.int64))
    tl.store(lengths_ptr + row, place)


@triton.jit
def inverse(p, u, v):
    """Return the first of the tokens v whose cumulative probability exceeds the share u of Σp."""
    below = tl.cumsum(p, 0)
    token = tl.sum((below <= u * tl.max(below, 0)).to(tl.int32), 0)
    # u · Σp may round to Σp, which no cumulative sum exceeds.
    return tl.minimum(token, tl.max(tl.where(p > 0.0, v, 0), 0))


@triton.jit
def ordered(x):
    """Return int32 keys in the order of the floats x: the bits but the sign, negated for negative x, so that −0 equals
    0. Those of 16-bit floats take 16 bits, so that a bisection ends after half the rounds."""
    if x.dtype.primitive_bitwidth == 16:
        bits = x.to(tl.int16, bitcast=True).to(tl.int32)
        return tl.where(bits < 0, -(bits & 0x7FFF), bits)
    else:
        bits = x.to(tl.int32, bitcast=True)
        return tl.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


@triton.jit
def kth_largest(keys, k):
    """Return the k-th largest of int32 keys by bisection; it ends early where exactly k keys reach the middle."""
    low, high = tl.min(keys, 0).to(tl.int64), tl.max(keys, 0).to(tl.int64)
    while low < high:  # at least k keys reach `low`, and fewer reach high + 1
        middle = low + (high - low + 1) // 2
        reach = tl.sum((keys >= middle.to(tl.int32)).to(tl.int32), 0)
        if reach >= k:
            low = middle
            if reach == k:
                high = middle
        else:
            high = middle - 1
    return low.to(tl.int32)
