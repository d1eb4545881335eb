"""Lab 01, exercise 9: count the FLOPs per token of a training step, and compute the MFU."""


def mfu(config, length, tokens_per_s, peak):
    """Return (flops, share): FLOPs per token of a training step, and the MFU from 0 to 1.

    config: vocabulary V, layers, width W, heads, kv_heads, hidden F, tied; a head is W / heads
    wide. length: tokens in a sequence. peak: in FLOP/s.
    Only matrix products count: the projections q, k, v (k and v have kv_heads heads) and that of
    attention's output; q·kᵀ and p·v for each of the `heads` heads; the MLP's gate, up and down; and
    the logits, which multiply by a V × W matrix whether or not it is tied to the embedding. A token
    attends to itself and to the tokens before it: count their mean over the sequence. The
    embedding only looks rows up; norms, softmax, rotary embedding and optimizer are no products.
    A multiplication and its addition are two FLOPs. For each product of the forward pass, the
    backward pass computes two as large. Recomputation by checkpoints does not count.
    """
    # 1. One layer's multiplications per token: by its matrices, and for the scores.
    # 2. All layers and the logits, two FLOPs each; forward and backward.
    # 3. The FLOPs of one second as a share of the peak.
    ### BEGIN SOLUTION
    W, kv_width = config.width, config.width // config.heads * config.kv_heads
    projections = 2 * W * W + 2 * W * kv_width
    scores = 2 * W * (length + 1) / 2
    mlp = 3 * W * config.hidden
    forward = 2 * (config.layers * (projections + scores + mlp) + config.vocabulary * W)
    flops = 3 * forward
    return flops, flops * tokens_per_s / peak
    ### END SOLUTION
