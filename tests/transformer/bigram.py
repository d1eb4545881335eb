"""The loss of a model without any context: a table of which byte follows which."""

import functools

import numpy as np
import torch
from torch import Tensor

from labs_helpers.transformer.text import text


def bigram_loss(sample: tuple[Tensor, Tensor] | None = None) -> float:
    """Return the nats per byte of a table P(next byte | byte) counted on the train part.

    Over the sample (x, y), or over the whole validation part. To be better, a transformer has to use its attention.
    """
    table = _bigram_table()
    if sample is None:
        data = text("validation").long()
        sample = data[:-1], data[1:]
    x, y = sample
    return -table[x, y].mean().item()


@functools.cache
def _bigram_table() -> Tensor:
    data = text("train").numpy().astype(np.int64)
    counts = np.bincount(256 * data[:-1] + data[1:], minlength=256 * 256).reshape(256, 256)
    smoothed = torch.from_numpy(counts) + 0.1  # a pair that train does not have is unlikely, not impossible
    return (smoothed / smoothed.sum(1, keepdim=True)).log()
