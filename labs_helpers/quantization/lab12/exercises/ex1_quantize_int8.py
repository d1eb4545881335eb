"""Lab 12, exercise 1: round a weight to int8, with a scale per output channel and the bound of its error."""

import torch


def quantize_int8(w):
    """Quantize a weight to int8 with one scale per output channel.

    w: (N, K), float32, float16 or bfloat16; row n holds the weights of output channel n.
    Returns (q, scale, bound): q, int8 (N, K), from −127 to 127, where w ≈ q · scale; scale,
    float32 (N,), positive; bound, float32 (N,), the largest error |w − q · scale| that rounding
    to nearest can make in a row with that scale.
    """
    # 1. Work in float32. Each row's scale maps its largest absolute value to 127.
    # 2. A row of zeros has no such scale. Give it the scale 1.
    # 3. Divide by the scale and round to the nearest whole number.
    # 4. How far from a number can the nearest whole number be, and what is that in units of w?
    ### BEGIN SOLUTION
    w = w.float()
    scale = w.abs().amax(dim=1) / 127
    scale = torch.where(scale > 0, scale, 1.0)
    q = (w / scale[:, None]).round().to(torch.int8)
    return q, scale, scale / 2
    ### END SOLUTION
