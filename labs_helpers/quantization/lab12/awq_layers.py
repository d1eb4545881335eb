"""Layers whose inputs have a few important channels, and the quantizer of exercise 7."""

from __future__ import annotations

import torch

GROUP = 32
RATIOS = tuple(i / 10 for i in range(11))


def grouped(w: torch.Tensor, group: int = GROUP, bits: int = 4) -> torch.Tensor:
    """Return w, (N, K), after rounding to int4, or fewer bits, with a scale and a zero point per group of columns."""
    parts, most = w.unflatten(1, (-1, group)), 2**bits - 1
    low, high = parts.amin(dim=2, keepdim=True).clamp(max=0), parts.amax(dim=2, keepdim=True).clamp(min=0)
    scale = ((high - low) / most).clamp(min=1e-8)
    zero = (-low / scale).round()
    codes = ((parts / scale).round() + zero).clamp(0, most)
    return ((codes - zero) * scale).flatten(1)


def layer(number: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a layer's inputs (T, 64) and weight (N, 64), float32."""
    generator = torch.Generator().manual_seed(number)
    tokens, outputs, important = ((48, 24, 8.0), (1, 40, 30.0), (64, 16, 1.0))[number]
    x = torch.randn(tokens, 2 * GROUP, generator=generator)
    x[:, [5, 40]] *= important
    return x, torch.randn(outputs, 2 * GROUP, generator=generator) / 8
