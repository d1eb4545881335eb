"""Lab 01, exercise 5: the memory that a training step needs, from the model's shape alone."""


def peak_bytes(config, batch, length, itemsize=2):
    """The most bytes alive in a training step with plain attention and AdamW.

    The forecast may differ by 10% from what PyTorch allocates at the peak.
    config: vocabulary V, layers, width W, heads H, hidden F, tied; as many kv_heads as heads.
    Parameters, gradients, AdamW's two moments and activations have `itemsize` bytes an element (2:
    bfloat16, 4: float32); what the table above marks float32 has 4 in any case. Parameters and
    moments are always there. With them, the peak is at one of three points of the step:
    - The backward pass begins, in the loss's softmax: all that the forward pass keeps is there, and
      two gradients as large as the log-softmax, float32 too. No parameter has a gradient yet.
    - It is in the last layer's softmax: gone are the log-softmax, the last norm's tensors and what
      the table has below that layer's float32 probabilities. Two gradients as large as these
      stand there, float32 too; the parameters that have a gradient by then may be left out.
    - The update: no activations, all gradients, and a temporary as large as all parameters.
    """
    tokens = batch * length
    # 1. Parameters: embedding, per layer four W × W, three W × F and two norms, the last norm, and
    #    an output where it is not tied.
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
