"""Lab 01, exercise 6: update float16 weights without losing small changes, with master weights and a loss scale."""

import torch


def scaled_update(weights, master, gradients, scale, good_steps, lr, growth_interval):
    """Take one step of SGD. Return the (scale, good_steps) of the next step.

    weights: the model's parameters, float16, leaves that require gradients. master: the same in
    float32, in the same order.
    gradients: float16, of scale times the loss. The tensors in weights and master change in place,
    gradients do not. If any gradient contains an inf or a NaN, skip the step: no weight and no
    master changes, the scale is halved, and good_steps starts again from 0. Otherwise
    master −= lr · gradient / scale, all in float32, and the weights are the rounded masters. After
    growth_interval good steps in a row, the scale doubles and the count starts again.
    """
    # 1. Is every gradient finite? If not: skip the step, back off.
    # 2. Update the masters in float32, then write them to the weights.
    # 3. Count the good step, and grow the scale after enough of them.
    ### BEGIN SOLUTION
    if not all(gradient.isfinite().all() for gradient in gradients):
        return scale / 2, 0
    with torch.no_grad():
        for weight, exact, gradient in zip(weights, master, gradients, strict=True):
            exact -= lr * (gradient.float() / scale)
            weight.copy_(exact)
    good_steps += 1
    if good_steps == growth_interval:
        return scale * 2, 0
    return scale, good_steps
    ### END SOLUTION
