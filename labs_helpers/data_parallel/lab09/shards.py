"""Shards of flat memory, and a module to cut: what the checks and the hidden inputs of lab 09 are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn


def cut(flat: Tensor, size: int, front: bool = False) -> tuple[Tensor, ...]:
    """`flat` in equal shards, with zeros behind it, or in front."""
    more = -len(flat) % size
    return nn.functional.pad(flat, (more, 0) if front else (0, more)).chunk(size)


def shard_of(group: Any, whole: Tensor) -> Tensor:
    """A copy of this rank's shard."""
    return cut(whole, group.size())[group.rank()].clone()


def parameters_on(shard: Tensor, pieces: Sequence[tuple[int, int, int]]) -> list[nn.Parameter]:
    """The pieces of a shard, (number, begin, end) each, on its memory."""
    lengths = [end - begin for _, begin, end in pieces]
    parts = shard.split([*lengths, len(shard) - sum(lengths)])
    return [nn.Parameter(part) for part in parts[: len(pieces)]]


class Layer(nn.Module):
    """tanh(x @ weight.T + bias) · scale: three parameters, of which autograd keeps views, two of them a child's.

    Neither the first nor the last of them is the one whose gradient comes last: that is weight's. seen() is called when
    it computes, passed() when backward is inside it. values: (1 + out · (into + 1),)."""

    def __init__(self, into: int, out: int, values: Tensor) -> None:
        super().__init__()
        self.scale, self.linear = nn.Parameter(values[0] + 2), nn.Linear(into, out)
        self.linear.weight = nn.Parameter(values[1 : 1 + out * into].view(out, into) / 2)
        self.linear.bias = nn.Parameter(values[1 + out * into :].clone())
        self.seen: Callable[[], Any] = lambda: None
        self.passed: Callable[[], Any] = lambda: None

    def forward(self, x: Tensor) -> Tensor:
        self.seen()
        inside = torch.tanh(self.linear(x))
        if inside.requires_grad:
            inside.register_hook(lambda _: self.passed())
        return inside * self.scale


def train_on(
    shard: nn.Parameter, optimizer: torch.optim.Optimizer, gradients: Sequence[Tensor]
) -> torch.optim.Optimizer:
    """The optimizer, after a step with each of the gradients."""
    for gradient in gradients:
        shard.grad = gradient.clone()
        optimizer.step()
    return optimizer


@cache
def step_once() -> None:
    """torch.optim imports much at its first step, seconds on a busy machine: not within the ranks' time limit."""
    p = nn.Parameter(torch.zeros(1))
    p.grad = torch.zeros(1)
    torch.optim.SGD([p], lr=0.0).step()
