"""AWQ (Lin et al., 2024): protect the weights that meet large activations when weights alone are rounded.

Rounding makes the same error in every column of a group, and column j's is multiplied by |X_j|. Multiplying an
important column by s_j > 1 before rounding, and its activations by 1 / s_j, divides its error by s_j, unless the column
becomes the largest of its group and so coarsens the group's scale. The best trade-off is searched: s_j = (mean|X_j|)^α,
with the α that keeps the layers' outputs closest to the original ones. (The paper also searches how far to clip the
weights; this does not.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from labs_helpers.quantization.scaling import calibrate, matrix_groups, migrate, norm_groups
from labs_helpers.quantization.simulation import Rounding
from labs_helpers.transformer.model import Transformer


class Search(NamedTuple):
    alpha: float  # the best
    scale: Tensor  # its s, (K,)
    errors: list[float]  # per α of the grid: mean square error of the outputs


def importance_scale(importance: Tensor, alpha: float) -> Tensor:
    """Return importance^α, (K,), divided by √(max · min), so that about as many columns grow as shrink.

    importance: mean|X_j| per channel. Channels that are always zero count as 1e-4.
    """
    s = importance.clamp(min=1e-4) ** alpha
    return s / (s.max() * s.min()).sqrt()


def search_scale(weights: Sequence[Tensor], x: Tensor, rounding: Rounding, grid: int = 20) -> Search:
    """Try α = 0, 1/grid, …, 1 for layers that read the same x.

    weights: (N, K) each; x: (rows, K). α = 0 is rounding to nearest. The error of one α sums up the layers' mean square
    errors. Of equal errors the smallest α wins.
    """
    importance = x.abs().mean(dim=0)
    alphas = [step / grid for step in range(grid + 1)]
    scales = [importance_scale(importance, alpha) for alpha in alphas]
    errors = [
        sum((x @ (rounding(w * scale) / scale - w).T).square().mean().item() for w in weights) for scale in scales
    ]
    best = errors.index(min(errors))
    return Search(alphas[best], scales[best], errors)


@torch.no_grad()
def protect(model: Transformer, tokens: Tensor, rounding: Rounding, grid: int = 20) -> dict[str, Search]:
    """Scale the columns of all layers in place, ready to be rounded; return each group's search.

    tokens: to calibrate on, (B, L) of int64. The model computes the same function as before.
    """
    groups = norm_groups(model) + matrix_groups(model)
    found = {}
    for group, x in zip(groups, calibrate(model, groups, tokens), strict=True):
        found[group.name] = search_scale([reader.weight.float() for reader in group.readers], x, rounding, grid)
        migrate(group, found[group.name].scale.to(group.source.dtype))
    return found
