"""Lab 01, exercise 5: forecast the memory of a training step from the model's shape."""


def peak_bytes(config, batch, length, itemsize=2):
    """Return the most bytes alive in a training step with plain attention and AdamW.

    The forecast may differ by 10% from what PyTorch allocates at the peak.
    config: vocabulary V, layers, width W, heads H, hidden F, tied; as many kv_heads as heads.
    Parameters, gradients, AdamW's two moments and activations take `itemsize` bytes per element (2:
    bfloat16, 4: float32); tensors that the table above marks float32 always take 4. Parameters and
    moments are always in memory. The peak is at one of three points of the step, which add:
    - The backward pass begins, in the loss's softmax: all activations of the forward pass, and two
      gradients as large as the log-softmax, also float32. No parameter has a gradient yet.
    - It reaches the last layer's softmax: the log-softmax, the last norm's tensors and the tensors
      below that layer's float32 probabilities in the table are freed. Two gradients as large as
      these probabilities are added, also float32. You may ignore gradients of parameters.
    - The update: no activations, all gradients, and a temporary as large as all parameters.
    """
    tokens = batch * length
    # 1. Parameters: embedding, per layer four W × W, three W × F and two norms, the last norm, and
    #    an output if it is not tied.
    # 2. What a layer keeps, from the table: down to the probabilities, and below them.
    # 3. What is kept once, the three points, and the largest of them.
    ### BEGIN SOLUTION
    V, W, F = config.vocabulary, config.width, config.hidden
    parameters = config.layers * (4 * W * W + 3 * W * F + 2 * W) + W + V * W * (2 - config.tied)
    norm = tokens * W * (4 + 2 * itemsize)
    scores = batch * config.heads * length**2
    above = norm + 3 * itemsize * tokens * W + length**2 + 4 * scores
    rounded = 0 if itemsize == 4 else itemsize * scores
    layer = above + rounded + itemsize * tokens * W + norm + 4 * itemsize * tokens * F
    loss = config.layers * layer + norm + 3 * 4 * tokens * V
    softmax = (config.layers - 1) * layer + above + 2 * 4 * scores
    states = 3 * itemsize * parameters
    return max(states + loss, states + softmax, 5 * itemsize * parameters)
    ### END SOLUTION
