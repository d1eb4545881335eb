"""Lab 13, exercise 1: count the FLOPs and bytes of a forward pass with a KV cache."""


def step_cost(config, parameters, batch, new, past):
    """Return (flops, bytes) of one forward pass of a decoder with bfloat16 weights and cache.

    The pass computes `new` positions of each of `batch` sequences, which have `past` positions in
    the cache: new = 1 is a decoding step, and past = 0 a prefill.
    config: layers; heads, of the queries; key_value_heads; head_dim. parameters: how many
    weights. FLOPs: two per weight and new position. In every layer and for each query head,
    attention takes 2 · head_dim for each score and as many for the product of its weight with
    the value. A position attends to itself and to all positions before it.
    Bytes: every weight is read once. In every layer, the keys and values of past positions are
    read, and those of the new positions are written. Nothing else is counted.
    """
    # 1. The FLOPs of the weights, for all new positions of all sequences.
    # 2. How many pairs of a new position and one that it attends to has a sequence?
    # 3. How many numbers are the keys and values of one position? Which heads have them?
    ### BEGIN SOLUTION
    pairs = new * past + new * (new + 1) // 2
    flops = 2 * parameters * batch * new
    flops += 4 * config.layers * config.heads * config.head_dim * batch * pairs
    numbers = 2 * config.layers * config.key_value_heads * config.head_dim
    return flops, 2 * parameters + 2 * numbers * batch * (past + new)
    ### END SOLUTION
