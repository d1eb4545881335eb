"""Move a scale from the layers that read some channels to the one that writes them: SmoothQuant and AWQ build on it.

Dividing channel j where it is written and multiplying column j of every weight that reads it changes no output. So the
activations between the two, and the columns of the weights, can be scaled for the quantizer's benefit.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from labs_helpers.transformer.model import Block, Transformer


class Group(NamedTuple):
    """Linear layers that read the same channels, and the parameter that writes them."""

    name: str  # 'blocks.0.mlp.down', or the name of the whole branch that reads a norm
    source: Tensor  # a norm's weight (K,), or a matrix (K, …) with one row per channel
    readers: tuple[nn.Linear, ...]  # with weights (N, K)


def norm_groups(model: Transformer) -> list[Group]:
    """Return the layers that read each RMSNorm: wq, wk, wv; gate, up."""
    found = []
    for number, block in enumerate(cast(list[Block], model.blocks)):
        attention, mlp = block.attention, block.mlp
        readers = (attention.wq, attention.wk, attention.wv)
        found.append(Group(f"blocks.{number}.attention", block.attention_norm.weight, readers))
        found.append(Group(f"blocks.{number}.mlp", block.mlp_norm.weight, (mlp.gate, mlp.up)))
    return found


def matrix_groups(model: Transformer) -> list[Group]:
    """Return the layers whose input another matrix writes: down reads silu(gate) · up, and wo reads averages of v.

    If query heads share values, one channel of v has several readers in wo, and wo is left out.
    """
    found = []
    for number, block in enumerate(cast(list[Block], model.blocks)):
        attention, mlp = block.attention, block.mlp
        if attention.wv.weight.shape[0] == attention.wo.weight.shape[1]:
            found.append(Group(f"blocks.{number}.attention.wo", attention.wv.weight, (attention.wo,)))
        found.append(Group(f"blocks.{number}.mlp.down", mlp.up.weight, (mlp.down,)))
    return found


@torch.no_grad()
def migrate(group: Group, scale: Tensor) -> None:
    """Divide a group's activations by `scale`, (K,), and multiply its readers' columns by it, in place.

    The model's outputs change by rounding only, and not at all if the scale holds powers of two.
    """
    group.source.div_(scale.view(-1, *[1] * (group.source.ndim - 1)))
    for reader in group.readers:
        reader.weight.mul_(scale)


@torch.no_grad()
def calibrate(model: Transformer, groups: list[Group], tokens: Tensor) -> list[Tensor]:
    """Return what each group's readers read while the model runs `tokens`, (B, L) of int64: (B · L, K) in float32."""
    inputs: dict[nn.Module, Tensor] = {}

    def keep(module: nn.Module, arguments: tuple[Tensor, ...]) -> None:
        inputs[module] = arguments[0].flatten(0, -2).float()

    hooks = [group.readers[0].register_forward_pre_hook(keep) for group in groups]
    try:
        model(tokens)
    finally:
        for hook in hooks:
            hook.remove()
    return [inputs[group.readers[0]] for group in groups]
