"""The cases of `scaled_update`: steps with known results, and a training run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

INF, NAN = torch.inf, torch.nan
TRAINING = 100  # steps


@dataclass(frozen=True)
class Case:
    """Masters, the gradients of each step in float16, and the initial state of the update."""

    name: str
    master: tuple[Tensor, ...]
    steps: tuple[tuple[Tensor, ...], ...]
    scale: float
    lr: float = 2.0**-4
    interval: int = 100
    good: int = 0


def _drawn(*shapes: tuple[int, ...], spread: float, seed: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(seed)
    return tuple(spread * torch.randn(shape, generator=generator) for shape in shapes)


def _low(*tensors: Tensor) -> tuple[Tensor, ...]:
    return tuple(tensor.half() for tensor in tensors)


SHAPES = ((3, 4), (5,), (2, 3, 2))
MASTER = _drawn(*SHAPES, spread=0.02, seed=0)
FINE = _low(*_drawn(*SHAPES, spread=30.0, seed=1))


def _with(index: int, *values: float) -> tuple[Tensor, ...]:
    """Return gradients with these values in one of the tensors, from its second element on."""
    gradients = tuple(gradient.clone() for gradient in FINE)
    gradients[index].view(-1)[1 : 1 + len(values)] = torch.tensor(values)
    return gradients


def _one_large(like: Tensor) -> Tensor:
    gradient = torch.zeros_like(like)
    gradient.view(-1)[1] = 65504.0
    return gradient


def _skipped(name: str, gradients: tuple[Tensor, ...], scale: float = 64.0) -> Case:
    return Case(name, MASTER, (gradients,), scale, lr=0.01, good=5)


GOOD, BAD = FINE, _with(1, INF)
SCRIPT = (GOOD, GOOD, BAD, GOOD, GOOD, GOOD, GOOD, GOOD, GOOD, BAD, BAD, GOOD)
CASES = (
    Case("three tensors, one step", MASTER, (FINE,), 64.0, lr=0.01),
    Case(
        "updates too small for float16, 40 of them",
        (torch.ones(4), torch.full((2, 2), 2.0)),
        40 * (_low(torch.full((4,), 2.0**-4), torch.full((2, 2), 2.0**-4)),),
        64.0,
    ),
    Case(
        "gradients that vanish in float16 when they are divided by the scale",
        (torch.zeros(6), torch.full((2, 3), 2.0**-20)),
        (_low(torch.arange(1.0, 7) * 2.0**-11, torch.arange(1.0, 7).view(2, 3) * -(2.0**-11)),),
        2.0**17,  # which float16 does not have
        lr=32.0,
    ),
    _skipped("inf in the last of three tensors", _with(2, INF)),
    _skipped("−inf in the first", _with(0, -INF)),
    _skipped("NaN all over the one in the middle", (FINE[0], torch.full_like(FINE[1], NAN), FINE[2])),
    _skipped("inf and −inf in one tensor", _with(1, INF, -INF)),
    _skipped("a scale of 1 and NaN", _with(2, NAN), scale=1.0),
    Case("65504, float16's largest number", MASTER, (_low(*map(_one_large, MASTER)),), 2.0**20, lr=4.0, good=5),
    Case("finite gradients with a sum above 65504", MASTER, (_with(2, *5 * [4e4]),), 2.0**20, good=5),
    Case("growth_interval 3: good steps and skipped ones", MASTER, SCRIPT, 2.0**12, interval=3),
    Case("growth_interval 1", MASTER, (GOOD, GOOD, BAD, GOOD), 2.0**12, interval=1),
    Case("a scale of 65536 and growth_interval 1", MASTER, (GOOD,), 2.0**16, interval=1),
)


def trained(update: Callable | None) -> tuple[float, int]:
    """Return (loss, skipped steps) of a small network after TRAINING steps: in float16 with `update`, or in float32.

    The loss is divided by 2²², which makes its gradients as small as a large model's, so they vanish without a scale.
    """
    generator = torch.Generator().manual_seed(0)
    x, a, b, c = (torch.randn(shape, generator=generator) for shape in ((64, 8), (8, 1), (8, 16), (16, 1)))
    y, master = torch.sin(x @ a), [b / 2, c / 2]
    dtype = torch.float32 if update is None else torch.float16
    weights = [tensor.to(dtype, copy=True).requires_grad_() for tensor in master]
    scale, good, skipped, lr = 1.0 if update is None else 2.0**40, 0, 0, 2.0**22 * 2e-4
    for _ in range(TRAINING):
        loss = ((torch.tanh(x.to(dtype) @ weights[0]) @ weights[1]).float() - y).square().mean()
        gradients = torch.autograd.grad(scale * (loss / 2**22), weights)
        if update is None:
            with torch.no_grad():
                for weight, gradient in zip(weights, gradients, strict=True):
                    weight -= lr * gradient
        else:
            before = scale
            scale, good = update(weights, master, gradients, scale, good, lr, 100)
            skipped += scale < before
    return loss.item(), skipped
