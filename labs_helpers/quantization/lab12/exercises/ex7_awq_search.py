"""Lab 12, exercise 7: AWQ searches the factors that protect a layer's important channels."""

import torch


def awq_search(x, w, quantize, ratios):
    """Find the factors of a layer's input channels that lose the least when its weight is rounded.

    x: (T, K), the layer's inputs, no channel all 0. w: (N, K). quantize(w): the weight after
    quantizing and dequantizing, (N, K). ratios: numbers to try.
    Returns (ratio, s, errors): the best ratio, its factors (K,), and one error per ratio, (R,).
    """
    # 1. The importance of channel j is the mean of |x[:, j]|.
    # 2. For each ratio: s = importance ** ratio, divided by √(largest s · smallest s).
    # 3. Multiply the weight's channels by s, quantize, and divide the result by s again.
    # 4. The error is the mean square of the difference between the outputs x · wᵀ with the
    #    original and with the resulting weight.
    # 5. Return the ratio with the smallest error; the first one if several are equal.
    ### BEGIN SOLUTION
    importance, right = x.abs().mean(dim=0), x @ w.T
    factors, errors = [], []
    for ratio in ratios:
        s = importance**ratio
        s = s / (s.max() * s.min()).sqrt()
        rounded = quantize(w * s) / s
        factors.append(s)
        errors.append((right - x @ rounded.T).square().mean())
    errors = torch.stack(errors)
    best = int(errors.argmin())
    return ratios[best], factors[best], errors
    ### END SOLUTION
