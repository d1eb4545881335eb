"""A static cache of keys and values, and how an ordinary forward pass fills it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from labs_helpers.transformer.attentions import AttentionFunction
from labs_helpers.transformer.config import TransformerConfig
from labs_helpers.transformer.model import Transformer


class KVCache:
    """Keys (rotated) and values of up to `capacity` positions for a batch of sequences, in every layer.

    k, v: (layers, B, Hkv, capacity, D). lengths: (B,), int32, on the device: the positions that each sequence uses.
    Whatever lies behind them is never read. ValueError for a batch or a capacity that does not fit.
    """

    def __init__(
        self,
        config: TransformerConfig,
        batch: int,
        capacity: int,
        dtype: torch.dtype,
        device: torch.device | str | None = None,
    ) -> None:
        if batch < 1:
            raise ValueError(f"batch is {batch}; a cache needs at least one sequence")
        if not 1 <= capacity <= config.context:
            raise ValueError(f"capacity is {capacity}, and the model's context has 1 to {config.context} positions")
        shape = (config.layers, batch, config.key_value_heads, capacity, config.head_dim)
        self.k, self.v = (torch.zeros(shape, dtype=dtype, device=device) for _ in range(2))
        self.lengths = torch.zeros(batch, dtype=torch.int32, device=device)

    @classmethod
    def for_model(cls, model: Transformer, batch: int, capacity: int) -> KVCache:
        """Return a cache in the model's dtype, on its device."""
        weight = model.norm.weight
        return cls(model.config, batch, capacity, weight.dtype, weight.device)

    @property
    def batch(self) -> int:
        return self.k.shape[1]

    @property
    def capacity(self) -> int:
        return self.k.shape[3]

    @property
    def nbytes(self) -> int:
        """The bytes of keys and values for the whole capacity."""
        return self.k.nbytes + self.v.nbytes


@contextmanager
def filled(cache: KVCache, model: Transformer) -> Iterator[None]:
    """Make every forward pass of the model inside the block copy its keys and values to the first positions of the
    cache. It does not change `lengths`: with prompts padded on the right, only the caller knows them."""
    blocks: Any = model.blocks
    attentions = [block.attention for block in blocks]
    before: list[AttentionFunction] = [attention.attention for attention in attentions]

    def keep(layer: int) -> AttentionFunction:
        def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
            cache.k[layer, :, :, : k.shape[2]] = k
            cache.v[layer, :, :, : v.shape[2]] = v
            return before[layer](q, k, v)

        return attend

    for layer, attention in enumerate(attentions):
        attention.attention = keep(layer)
    try:
        yield
    finally:
        for attention, usual in zip(attentions, before, strict=True):
            attention.attention = usual
