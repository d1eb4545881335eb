"""Lab 12, exercise 8: multiply int8 activations by int8 weights, and rescale the sums (W8A8)."""

import torch


def int8_matmul(x, q, scale):
    """Return y = x · (q · scale)ᵀ, float32 (M, N), with the activations rounded to int8.

    x: (M, K), float32 or float16, one token per row. q: int8 (N, K). scale: float32 (N,), one per
    output channel.
    """
    # 1. In float32, give each token its own scale, which maps its largest |x| to 127. A token of
    #    zeros gets the scale 1.
    # 2. Divide the tokens by their scales and round them to the nearest whole numbers.
    # 3. Multiply the whole numbers by q and add up, exactly: the sums need int32.
    # 4. Which two scales belong to the sum in row m and column n? Apply them in float32.
    ### BEGIN SOLUTION
    x = x.float()
    of_token = x.abs().amax(dim=1, keepdim=True) / 127
    of_token = torch.where(of_token > 0, of_token, 1.0)
    rounded = (x / of_token).round().to(torch.int32)
    sums = rounded @ q.to(torch.int32).T
    return sums.float() * of_token * scale[None, :]
    ### END SOLUTION
