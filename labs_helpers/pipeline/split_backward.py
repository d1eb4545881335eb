"""Split a backward pass in two: I computes the gradient of the input, W the gradients of the weights, later.

Only I is on the way to the stage before; W may run whenever the rank would otherwise wait (Qi et al., Zero Bubble
Pipeline Parallelism, 2024). In I, each product y = x·Wᵀ computes ∂x and keeps (x, ∂y). W then adds ∂yᵀ·x to the
weight's gradient, in place, with one product and without a temporary. Calling `torch.autograd.grad` twice, for the
input and then for the weights, would compute every ∂y twice.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class WeightGradients:
    """The weights' gradients that a backward pass left for later: one entry per product."""

    def __init__(self) -> None:
        self.entries: list[tuple[Tensor, Tensor, Tensor]] = []

    def take(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """Return the entries (weight, x, ∂y) since the last call, and forget them."""
        taken, self.entries = self.entries, []
        return taken

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """Return x·Wᵀ + b, as `F.linear` does. The weight's gradient is left for later; the bias gets its own now."""
        if torch.is_grad_enabled() and weight.requires_grad:
            y: Tensor = _LaterWeight.apply(x, weight, self)
            return y if bias is None else y + bias
        return F.linear(x, weight, bias)


class _LaterWeight(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, later: WeightGradients) -> Tensor:
        ctx.save_for_backward(x)
        ctx.weight, ctx.later = weight, later  # the parameter itself: a saved tensor may come back as a copy
        return F.linear(x, weight)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, None, None]:
        (x,) = ctx.saved_tensors
        ctx.later.entries.append((ctx.weight, x, dy))
        return (dy @ ctx.weight if ctx.needs_input_grad[0] else None), None, None


@torch.no_grad()
def add_weight_gradients(entries: list[tuple[Tensor, Tensor, Tensor]]) -> None:
    """Run W: add ∂yᵀ·x to the gradient of each entry's weight, and drop the entries."""
    while entries:
        weight, x, dy = entries.pop()
        rows, columns = dy.flatten(0, -2).t(), x.flatten(0, -2)
        if weight.grad is None:
            weight.grad = rows @ columns
        else:
            weight.grad.addmm_(rows, columns)


def leave_weights_for_later(module: nn.Module) -> WeightGradients:
    """Make every linear layer of `module` leave its weight's gradient for later; return the place where they collect.

    Parameters, their names and the results do not change. Gradient hooks do not fire for these weights, because their
    gradients do not pass through autograd. Call this when the parameters are on their device.
    """
    later = WeightGradients()
    layer: Any  # some of its methods are replaced
    for layer in module.modules():
        if hasattr(layer, "product"):  # a tensor-parallel layer, whose product has collectives around it
            layer.product = partial(_product, later, layer.weight)
        elif isinstance(layer, nn.Linear):
            layer.forward = partial(_product, later, layer.weight, bias=layer.bias)  # type: ignore[method-assign]
        elif hasattr(layer, "project"):  # a transformer, whose last product may use the embedding's weight
            layer.project = later.linear
    return later


def _product(later: WeightGradients, weight: Tensor, x: Tensor, bias: Tensor | None = None) -> Tensor:
    return later.linear(x, weight, bias)
