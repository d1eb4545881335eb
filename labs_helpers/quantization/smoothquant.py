"""SmoothQuant (Xiao et al., 2023): make activations easy to round at the expense of the weights.

A few channels of the activations can be a hundred times larger than the others, and a token's single int8 scale follows
the largest one. Weights are spread evenly. So each channel's scale is divided between the two: s_j = max|X_j|^α /
max|W_j|^(1−α), X̂ = X / s, Ŵ = W · s. The division of X costs nothing, because the weight of the RMSNorm before the
layers absorbs it.
"""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.quantization.scaling import calibrate, migrate, norm_groups
from labs_helpers.transformer.model import Transformer


def smoothing_scale(activation_max: Tensor, weight_max: Tensor, alpha: float) -> Tensor:
    """Return s, (K,), from the largest absolute values per channel of the activations and of the weights, (K,) each.

    alpha: from 0 (the weights become equally large in all channels) to 1 (the activations do). A channel that is zero
    in either keeps its scale, s = 1. ValueError for another alpha.
    """
    if not 0 <= alpha <= 1:
        raise ValueError(f"alpha is {alpha}, not from 0 to 1")
    s = activation_max**alpha / weight_max ** (1 - alpha)
    return torch.where((activation_max > 0) & (weight_max > 0), s, 1.0)


@torch.no_grad()
def smooth(model: Transformer, tokens: Tensor, alpha: float = 0.5) -> None:
    """Smooth the inputs of wq, wk, wv, gate and up in place, calibrated on `tokens`, (B, L) of int64.

    The model computes the same function as before. wo and down read no norm, and stay as they are, as in the paper.
    """
    groups = norm_groups(model)
    for group, x in zip(groups, calibrate(model, groups, tokens), strict=True):
        weight_max = torch.stack([reader.weight.abs().amax(dim=0) for reader in group.readers]).amax(dim=0)
        migrate(group, smoothing_scale(x.abs().amax(dim=0), weight_max.float(), alpha).to(group.source.dtype))
