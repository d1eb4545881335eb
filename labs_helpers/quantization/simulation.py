"""Compute what a quantized model computes, with ordinary products: for quality, on any device and without kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Rounding = Callable[[Tensor], Tensor]  # a tensor → its values after quantizing and dequantizing, of the same shape


def int8_per_token(x: Tensor) -> Tensor:
    """Round activations (…, K) to int8 with one scale per token, its largest absolute value / 127."""
    scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 127
    return (x / scale).round() * scale


def fp8_per_token(x: Tensor) -> Tensor:
    """Round activations (…, K) to float8 e4m3 with one scale per token, its largest absolute value / 448."""
    scale = x.abs().amax(dim=-1, keepdim=True).clamp(min=1e-12) / 448
    return (x / scale).to(torch.float8_e4m3fn).to(x.dtype) * scale


@torch.no_grad()
def simulate(model: nn.Module, weights: Rounding, activations: Rounding | None = None) -> None:
    """Round the weights of all linear layers in place, and from now on their inputs as well.

    weights: of one layer, (N, K). activations: its inputs, (…, K); None leaves them alone.
    """
    for module in model.modules():
        if isinstance(module, nn.Linear):
            module.weight.copy_(weights(module.weight))
            if activations is not None:
                module.register_forward_pre_hook(_rounded(activations))


def _rounded(activations: Rounding) -> Callable[[nn.Module, tuple[Any, ...]], Tensor]:
    return lambda _, arguments: activations(arguments[0])
