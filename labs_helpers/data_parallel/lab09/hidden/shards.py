"""Shards on practice ranks: a module to shard, pieces of parameters, and optimizers over them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from labs_helpers.data_parallel.lab09.flat import flatten
from labs_helpers.data_parallel.lab09.freed_memory import Watched
from labs_helpers.data_parallel.lab09.shards import Layer, shard_of, step_once

Maker = Callable[..., torch.optim.Optimizer]
ADAMW: Maker = partial(torch.optim.AdamW, lr=0.1, weight_decay=0.02)
MOMENTUM: Maker = partial(torch.optim.SGD, lr=0.3, momentum=0.5)
PLAIN: Maker = partial(torch.optim.SGD, lr=0.2)
TWO_GROUPS = [(3, 1), (0, 2)]
WORLDS = (  # ranks, their groups, an optimizer, a dtype
    (1, None, ADAMW, torch.float32),
    (3, None, MOMENTUM, torch.float64),
    (4, TWO_GROUPS, PLAIN, torch.float32),
)


def layers_of(widths: list[int], values: list[Tensor]) -> list[Layer]:
    """Return one Layer between each two widths, each from 1 + out · (into + 1) values."""
    return [Layer(into, out, one.clone()) for into, out, one in zip(widths, widths[1:], values, strict=False)]


def sharded_passes(
    function: Callable[..., Any], watched: Watched, group: Any, rank: int, widths: list[int], values: list[Tensor],
    own: list[Tensor],
) -> list[Any]:  # fmt: skip
    """Run two sharded modules in sequence, forward and backward for each of `own`.

    Return outputs and gradients, the memory freed between uses, and the shards, which change after each pass.
    """
    layers = layers_of(widths, values)
    wholes = [flatten(layer.parameters(), group.size()) for layer in layers]
    for whole in wholes:
        watched.watch(whole)
    shards = [function(layer, whole, group) for layer, whole in zip(layers, wholes, strict=True)]
    left: list[Any] = [[shard.detach().clone() for shard in shards]]
    for x in own:
        out = layers[1](layers[0](x))
        freed = [not watched.alive(whole) for whole in wholes]
        out.square().sum().backward()
        freed += [not watched.alive(whole) for whole in wholes]
        freed += [p.grad is None for layer in layers for p in layer.parameters()]
        left.append([out, freed, [shard.grad.clone() for shard in shards]])
        with torch.no_grad():
            for shard in shards:
                shard.mul_(0.75)
    return left


def passes_ahead(
    function: Callable[..., Any], watched: Watched, group: Any, rank: int, widths: list[int], values: list[Tensor],
    own: list[Tensor],
) -> list[Any]:  # fmt: skip
    """Run bfloat16 modules with weights gathered ahead from float32 shards; return outputs, gradients, freed memory."""
    layers = layers_of(widths, values)
    flats = [torch.cat([p.detach().flatten() for p in layer.parameters()]) for layer in layers]
    shards = [nn.Parameter(shard_of(group, flat)) for flat in flats]
    wholes = [flatten(layer.bfloat16().parameters(), group.size()) for layer in layers]
    for whole in wholes:
        watched.watch(whole)
        whole.untyped_storage().resize_(0)
    finish, left = function(list(layers), list(wholes), list(shards), group), list[Any]()
    for x in own:
        out = x.bfloat16()
        for layer in layers:
            out = layer(out)
        freed = [not watched.alive(whole) for whole in wholes]
        out.float().square().sum().backward()
        finish()
        freed += [not watched.alive(whole) for whole in wholes]
        left.append([out.float(), freed, [p.grad.float() for layer in layers for p in layer.parameters()]])
        for layer, shard in zip(layers, shards, strict=True):
            layer.zero_grad()
            shard.data.mul_(0.75)
    return left


def pieces_of(numels: list[int], size: int, rank: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Return (elements of a shard, (number, begin, end) of each parameter with elements in this rank's)."""
    shard_numel, starts = -(-sum(numels) // size), np.cumsum([0, *numels]).tolist()
    first = rank * shard_numel
    pieces = [(number, max(first - start, 0), min(first + shard_numel - start, numel))
              for number, (start, numel) in enumerate(zip(starts, numels, strict=False))]  # fmt: skip
    return shard_numel, [piece for piece in pieces if piece[1] < piece[2]]


step_once()
