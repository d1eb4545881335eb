"""The decoding loop that PyTorch's compiler makes of plain PyTorch on a static cache: a peer for `DecodeLoop`."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from labs_helpers.transformer.decode_operations import PLAIN
from labs_helpers.transformer.decode_plain import attend_plain
from labs_helpers.transformer.decode_step import DecodeStep
from labs_helpers.transformer.kv_cache import KVCache
from labs_helpers.transformer.model import Transformer


class CompiledStep(DecodeStep):
    """A DecodeStep of compiled layers, which read the whole capacity of the cache and mask what is not used.

    All layers share one compiled function. It returns the last product without adding it to the residual stream, so
    that the compiler can fuse this sum with the next layer's norm, as in a compiled model.
    """

    def __init__(self, model: Transformer, cache: KVCache) -> None:
        super().__init__(model, cache, PLAIN)
        eps = model.config.norm_eps

        def layer(
            x: Tensor, last: Tensor, qkv: Tensor, block: list[Tensor], where: list[Tensor]
        ) -> tuple[Tensor, Tensor]:
            first_norm, wo, second_norm, gate, up, down = block
            x = x + last
            x = x + F.linear(attend_plain(F.linear(norm(x, first_norm, eps), qkv), *where), wo)
            n = norm(x, second_norm, eps)
            return x, F.linear(F.silu(F.linear(n, gate)) * F.linear(n, up), down)

        def head(x: Tensor, last: Tensor, weight: Tensor, output: Tensor) -> Tensor:
            return F.linear(norm(x + last, weight, eps), output)

        self.layer: Any = torch.compile(layer, fullgraph=True, dynamic=False)
        self.head: Any = torch.compile(head, fullgraph=True, dynamic=False)

    def __call__(self, current: Tensor) -> Tensor:
        model, cache = self.model, self.cache
        x = model.embedding(current)
        last = torch.zeros_like(x)
        for number, (block, qkv) in enumerate(zip(self.blocks, self.qkv, strict=True)):
            where = [self.cos, self.sin, cache.lengths, cache.k[number], cache.v[number]]
            mlp, norms = block.mlp, (block.attention_norm.weight, block.mlp_norm.weight)
            weights = [norms[0], block.attention.wo.weight, norms[1], mlp.gate.weight, mlp.up.weight, mlp.down.weight]
            x, last = self.layer(x, last, qkv, weights, where)
        return self.head(x, last, model.norm.weight, (model.output or model.embedding).weight)


def norm(x: Tensor, weight: Tensor, eps: float) -> Tensor:
    """Compute `model.RMSNorm` as a function of its weight."""
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)
