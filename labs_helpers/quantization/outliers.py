"""Give a model the outlier channels that larger language models have, without changing its function.

In models of several billion parameters a few channels of the activations are a hundred times larger than the rest
(Dettmers et al., LLM.int8(), 2022). A small model may have none, so methods that mend them have nothing to do.
"""

from __future__ import annotations

import math

import torch

from labs_helpers.quantization.scaling import calibrate, migrate, norm_groups
from labs_helpers.transformer.model import Transformer


def make_outliers(model: Transformer, channels: int = 4, factor: float = 64.0, seed: int = 0) -> None:
    """Multiply some channels of every norm by `factor`, and divide the weights that read them by it, in place.

    channels: per norm, drawn with the seed. The outputs stay the same bit for bit, since the factor is a power of two;
    ValueError for another factor, or more channels than the norm has.
    """
    if not (factor > 0 and math.log2(factor).is_integer()):
        raise ValueError(f"factor is {factor}, not a power of two: the model's outputs would change by rounding")
    generator = torch.Generator().manual_seed(seed)
    for group in norm_groups(model):
        width = len(group.source)
        if not 0 <= channels <= width:
            raise ValueError(f"channels is {channels}; the norm has {width}")
        scale = torch.ones(width)
        scale[torch.randperm(width, generator=generator)[:channels]] = 1 / factor
        migrate(group, scale.to(group.source))


def outlier_ratio(model: Transformer, tokens: torch.Tensor) -> float:
    """Return how many times the largest channel exceeds the median one, by max|X_j|, in the norm where it does so most.

    tokens: (B, L) of int64.
    """
    largest = [x.abs().amax(dim=0) for x in calibrate(model, norm_groups(model), tokens)]
    return max((maxima.max() / maxima.median()).item() for maxima in largest)
