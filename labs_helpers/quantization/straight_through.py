"""Quantization-aware training with a straight-through estimator (Bengio et al., 2013; Jacob et al., 2018).

The forward pass uses the rounded weights, so the loss sees the rounding. The derivative of rounding is zero almost
everywhere. The backward pass pretends that it is 1, and hands the gradient to the weights in full precision. They
collect updates that are too small to change a rounded weight at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from labs_helpers.quantization.simulation import Rounding


class StraightThrough(torch.autograd.Function):
    """Forward: the rounded weight. Backward: the gradient as it comes."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, rounding: Rounding) -> Tensor:
        return rounding(weight.detach()).to(weight.dtype)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


class Rounded(nn.Module):
    """A parametrization of `weight`: what a layer's forward pass reads instead of the parameter."""

    def __init__(self, rounding: Rounding) -> None:
        super().__init__()
        self.rounding = rounding

    def forward(self, weight: Tensor) -> Tensor:
        return StraightThrough.apply(weight, self.rounding)


@contextmanager
def quantization_aware(model: nn.Module, rounding: Rounding) -> Iterator[None]:
    """Let all linear layers compute with rounded weights inside the block.

    An optimizer made inside the block updates the weights in full precision. They are what the model has afterwards,
    ready to be quantized.
    """
    layers = [module for module in model.modules() if isinstance(module, nn.Linear)]
    for layer in layers:
        parametrize.register_parametrization(layer, "weight", Rounded(rounding))
    try:
        yield
    finally:
        for layer in layers:
            parametrize.remove_parametrizations(layer, "weight", leave_parametrized=False)
