"""Make replicas of a model's parameters that differ in chosen bits, for exercise 6 of lab 11."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Parameters = dict[str, Tensor]
Edit = tuple[str, tuple[int, ...], str]  # a parameter, the ranks that change it, and how: a key of WAYS
# Step counts. The checksums of the first two, 2719559966 and 2719559965, are the same in float32; that of the third,
# 2719554078, is near and ends in the same byte.
STEPS = 5_082_052, 25_275_759, 61_644_508


def _next(x: Tensor) -> None:
    """Change the last bit of the first value."""
    bits = x.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()])
    bits[(0,) * x.ndim] += 1


def _swap(x: Tensor) -> None:
    """Exchange two values that differ."""
    x[0], x[1] = x[1].clone(), x[0].clone()


def _negative_zero(x: Tensor) -> None:
    x[0] = -0.0


def _shift(x: Tensor) -> None:
    """Add 0.25 to one value and subtract it from another."""
    x[2] += 0.25
    x[3] -= 0.25


WAYS: dict[str, Callable[[Tensor], Any]] = {
    "the last bit": _next,
    "two values exchanged": _swap,
    "−0.0": _negative_zero,
    "+0.25 and −0.25": _shift,
    "25,275,759 steps": lambda x: x.fill_(STEPS[1]),
    "61,644,508 steps": lambda x: x.fill_(STEPS[2]),
}


def replicas_of(ranks: int, edits: Sequence[Edit]) -> list[Parameters]:
    return [parameters_of(rank, edits) for rank in range(ranks)]


def parameters_of(rank: int, edits: Sequence[Edit]) -> Parameters:
    """Return the parameters of a rank. The names are not in sorted order."""
    draw = torch.Generator().manual_seed(11)
    found = {
        "layers.2.weight": torch.randn(200, 100, generator=draw).T,  # not contiguous
        "layers.10.weight": torch.randn(600, generator=draw, dtype=torch.float32).half(),
        "layers.2.bias": torch.tensor([0.0, 1.0, 2.5, 3.5, 0.0]),  # the same as the next one
        "layers.10.bias": torch.tensor([0.0, 1.0, 2.5, 3.5, 0.0]),
        "layers.2.scale": torch.linspace(1, 3, 64).bfloat16(),
        "head": torch.tensor([3e7, 1.0, 2.0, 4.0, -3e7]),
        "unused": torch.empty(0, 4),
        "running": torch.tensor([float("nan"), 1.0, float("inf")]),
        "steps": torch.tensor(STEPS[0]),
        "tokens": torch.tensor([2**53, 2**60, 7]),
    }
    for name, ranks, way in edits:
        if rank in ranks:
            WAYS[way](found[name])
    return found
