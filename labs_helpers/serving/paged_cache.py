"""A cache of keys and values in blocks, which requests take as they grow."""

from __future__ import annotations

import torch

from labs_helpers.serving.chunks import upload
from labs_helpers.transformer.model import Transformer


class PagedCache:
    """Keys (rotated) and values of `blocks` blocks of `size` positions in every layer, and the scratch block 0.

    k, v: (layers, blocks + 1, Hkv, size, D), in the model's dtype, on its device. capacity: the positions of the
    longest sequence.
    """

    def __init__(self, model: Transformer, blocks: int, size: int) -> None:
        config, weight = model.config, model.norm.weight
        shape = (config.layers, blocks + 1, config.key_value_heads, size, config.head_dim)
        self.k, self.v = (torch.zeros(shape, dtype=weight.dtype, device=weight.device) for _ in range(2))
        self.size, self.capacity = size, config.context

    @property
    def nbytes(self) -> int:
        """The bytes of keys and values, with those of the scratch block."""
        return self.k.nbytes + self.v.nbytes

    def copy(self, copies: list[tuple[int, int]]) -> None:
        """Copy blocks, (from, to) each, in every layer. It reads all of them before it writes."""
        if copies:
            sources, targets = (
                upload([block for pair in copies for block in pair], torch.int64, self.k.device).view(-1, 2).T
            )
            for cache in (self.k, self.v):
                cache[:, targets] = cache[:, sources]
