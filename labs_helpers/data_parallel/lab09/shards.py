"""Shards of flat memory and a small module, used by the checks and the hidden inputs of lab 09."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn


def cut(flat: Tensor, size: int, front: bool = False) -> tuple[Tensor, ...]:
    """Cut `flat` into equal shards, with zeros at the end, or in front."""
    more = -len(flat) % size
    return nn.functional.pad(flat, (more, 0) if front else (0, more)).chunk(size)


def shard_of(group: Any, whole: Tensor) -> Tensor:
    """Return a copy of this rank's shard."""
    return cut(whole, group.size())[group.rank()].clone()


def parameters_on(shard: Tensor, pieces: Sequence[tuple[int, int, int]]) -> list[nn.Parameter]:
    """Return the pieces (number, begin, end) of a shard as parameters in its memory."""
    lengths = [end - begin for _, begin, end in pieces]
    parts = shard.split([*lengths, len(shard) - sum(lengths)])
    return [nn.Parameter(part) for part in parts[: len(pieces)]]


class Layer(nn.Module):
    """Compute tanh(x @ weight.T + bias) · scale, with three parameters that autograd saves, two of them in a submodule.

    The gradient of weight, neither the first nor the last parameter, arrives last. The layer calls seen() when it
    computes, and passed() when backward is inside it. values: (1 + out · (into + 1),)."""

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
    """Return the optimizer after one step with each of the gradients."""
    for gradient in gradients:
        shard.grad = gradient.clone()
        optimizer.step()
    return optimizer


@cache
def step_once() -> None:
    """Run torch.optim's first step, which may import for seconds, outside the ranks' time limit."""
    p = nn.Parameter(torch.zeros(1))
    p.grad = torch.zeros(1)
    torch.optim.SGD([p], lr=0.0).step()
