"""One decoding step: the model's forward pass for one new position of every sequence, on a cache."""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from torch import Tensor, nn

from labs_helpers.transformer.decode_operations import Attend, Operations
from labs_helpers.transformer.decode_plain import Weight
from labs_helpers.transformer.kv_cache import KVCache
from labs_helpers.transformer.model import Transformer, rotary_angles


class RowsForward:
    """A model's forward pass over rows, each a token at some position of some sequence, on any kind of cache.

    It joins the weights of wq, wk and wv, so that one product computes q, k and v, and makes the model's own weights
    views of the joined ones: no second copy stays. A layer that is not an nn.Linear keeps its weight in `weight`, as a
    dataclass of tensors whose first dimension is N, but for those in its `BY_GROUP` (a quantised weight). positions:
    those whose rotary angles it keeps.
    """

    def __init__(self, model: Transformer, operations: Operations, positions: int) -> None:
        config = model.config
        self.model, self.operations = model, operations
        self.blocks: list[Any] = list(model.blocks)
        self.qkv = [joined([a.wq, a.wk, a.wv]) for a in (block.attention for block in self.blocks)]
        self.cos, self.sin = rotary_angles(positions, config.head_dim, config.rope_theta, model.norm.weight.device)

    def features(self, tokens: Tensor, at: Tensor, k: Tensor, v: Tensor, attend: Attend) -> Tensor:
        """Return the residual stream, (rows, width), after the last block, for tokens (rows,) of int64.

        at: (rows,), their positions, int32. k, v: the caches, whose first dimension is the layer; `attend` stores into
        them.
        """
        x = self.model.embedding(tokens)
        for layer in range(len(self.blocks)):
            o = attend(self.qkv_of(layer, x), self.cos, self.sin, at, k[layer], v[layer])
            x = self.after_attention(layer, x, o)
        return x

    def qkv_of(self, layer: int, x: Tensor) -> Tensor:
        """Return q, k and v, (rows, (H + 2 · Hkv) · D), of a layer whose input is x."""
        return self.operations.norm_product(x, self.blocks[layer].attention_norm, self.qkv[layer])

    def after_attention(self, layer: int, x: Tensor, o: Tensor) -> Tensor:
        """Return the layer's output for its input x, which may be replaced, and the attention o, (rows, H · D)."""
        do, block = self.operations, self.blocks[layer]
        x = do.product_add(o, block.attention.wo.weight, x)
        hidden = do.norm_swiglu(x, block.mlp_norm, block.mlp.gate.weight, block.mlp.up.weight)
        return do.product_add(hidden, block.mlp.down.weight, x)

    def logits(self, x: Tensor) -> Tensor:
        """Return the logits, (rows, V), from `features`."""
        model = self.model
        head = model.embedding if model.output is None else model.output
        return self.operations.norm_product(x, model.norm, head.weight)


class DecodeStep(RowsForward):
    """The model's features and logits for one new token per sequence."""

    def __init__(self, model: Transformer, cache: KVCache, operations: Operations) -> None:
        super().__init__(model, operations, cache.capacity)
        self.cache, self.attend = cache, operations.attention(cache, model.config.heads)

    def __call__(self, current: Tensor) -> Tensor:
        """Return the logits, (B, V), that follow the tokens `current`, (B,) of int64, at the positions `cache.lengths`.

        It stores keys and values at these positions, and leaves the lengths to the caller.
        """
        cache = self.cache
        return self.logits(self.features(current, cache.lengths, cache.k, cache.v, self.attend))


def joined(layers: list[nn.Module]) -> Weight:
    """Return the weights of several linear layers as one, (ΣN, K), and make the layers' own weights views of it.

    Repeating it returns the same memory. TypeError for weights of different kinds.
    """
    weights: list[Any] = [layer.weight for layer in layers]
    if len({type(weight) for weight in weights}) > 1:
        kinds = ", ".join(type(weight).__name__ for weight in weights)
        raise TypeError(f"the weights of q, k and v are {kinds}; one product takes weights of one kind")
    if isinstance(weights[0], Tensor):
        whole, parts = _joined([weight.data for weight in weights])
        for weight, part in zip(weights, parts, strict=True):
            weight.data = part
        return whole
    names = [
        field.name for field in dataclasses.fields(weights[0]) if isinstance(getattr(weights[0], field.name), Tensor)
    ]
    by_name = {name: _joined_rows(name, weights) for name in names}
    for number, layer in enumerate(layers):
        views: dict[str, Any] = {name: by_name[name][1][number] for name in names}
        layer.weight = dataclasses.replace(weights[number], **views)
    return dataclasses.replace(weights[0], **{name: by_name[name][0] for name in names})


def _joined_rows(name: str, weights: list[Any]) -> tuple[Tensor, list[Tensor]]:
    """Return a tensor of quantised weights, joined, and the parts. One whose rows are groups of K, which the weight's
    class names in `BY_GROUP`, is joined along its second dimension, and the layers keep their own."""
    tensors = [getattr(weight, name) for weight in weights]
    if name in getattr(weights[0], "BY_GROUP", ()):
        return torch.cat(tensors, 1), tensors
    return _joined(tensors)


def _joined(tensors: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """Return the tensors one below the other, and the parts of the result that they are."""
    rows = [len(tensor) for tensor in tensors]
    first, address = tensors[0], tensors[0].data_ptr()
    follow = []
    for tensor in tensors:
        follow.append(tensor.is_contiguous() and tensor.data_ptr() == address and _one_memory(tensor, first))
        address += tensor.nbytes
    if all(follow):  # an earlier loop has joined them
        whole = first.as_strided((sum(rows), *first.shape[1:]), first.stride(), first.storage_offset())
    else:
        whole = torch.cat(tensors)
    return whole, list(whole.split(rows))


def _one_memory(one: Tensor, other: Tensor) -> bool:
    return one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
