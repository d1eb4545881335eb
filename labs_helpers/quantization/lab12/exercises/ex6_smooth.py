"""Lab 12, exercise 6: SmoothQuant moves part of the activations' scale into the weight."""

import torch


def smooth(x, w, alpha):
    """Scale the input channels of activations and weight so that x · wᵀ stays the same.

    x: (T, K), activations of T tokens. w: (N, K). alpha: how much of the difficulty moves from the
    activations to the weight, 0 to 1. Returns (x_smooth, w_smooth, s): (T, K), (N, K) and the
    positive factors (K,).
    """
    # 1. For each input channel j, the largest |x[:, j]| and the largest |w[:, j]|.
    # 2. s[j] = (largest |x[:, j]|) ** alpha / (largest |w[:, j]|) ** (1 − alpha).
    #    Where either of the two is 0, s[j] = 1.
    # 3. Divide the activations by s. What must happen to the weight?
    ### BEGIN SOLUTION
    of_x, of_w = x.abs().amax(dim=0), w.abs().amax(dim=0)
    s = torch.where((of_x > 0) & (of_w > 0), of_x**alpha / of_w ** (1 - alpha), 1.0)
    return x / s, w * s, s
    ### END SOLUTION
