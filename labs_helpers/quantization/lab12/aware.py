"""The training that section 9 of lab 12 watches: a small model of bytes whose weights have 2 bits."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from functools import partial

import torch
from torch import nn

from labs_helpers.quantization.lab12.awq_layers import grouped
from labs_helpers.quantization.simulation import simulate
from labs_helpers.quantization.straight_through import quantization_aware
from labs_helpers.transformer.text import batches, validation_sample

CONTEXT, WIDTH = 8, 128
ROUNDING = partial(grouped, group=32, bits=2)
UNROUNDED, AFTERWARDS, AWARE = "not rounded", "trained, then rounded", "trained with rounding, then rounded"


class Embedded(nn.Module):
    """Predict the next byte from the previous CONTEXT bytes: an embedding and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(256, 16)
        self.layers = nn.Sequential(nn.Linear(CONTEXT * 16, WIDTH), nn.SiLU(), nn.Linear(WIDTH, 256))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.layers(self.embed(tokens).flatten(-2))


def _loss(model: nn.Module, tokens: torch.Tensor) -> torch.Tensor:
    """Return the mean nats per byte of rows of consecutive bytes."""
    windows = tokens.unfold(1, CONTEXT + 1, 1).flatten(0, 1)
    return nn.functional.cross_entropy(model(windows[:, :CONTEXT]), windows[:, CONTEXT])


def _train(model: nn.Module, steps: int, seed: int, lr: float) -> None:
    optimizer, stream = torch.optim.AdamW(model.parameters(), lr=lr), batches("train", 8, 40, seed)
    for _ in range(steps):
        optimizer.zero_grad()
        _loss(model, next(stream)[0]).backward()
        optimizer.step()


def compare(seeds: int = 3, steps: int = 150, further: int = 60) -> dict[str, list[float]]:
    """Return way → validation losses, one per seed. Every way trains equally long: `steps`, then `further` steps."""
    held_out = validation_sample(32, 72)[0]
    losses: dict[str, list[float]] = {UNROUNDED: [], AFTERWARDS: [], AWARE: []}
    for seed in range(seeds):
        torch.manual_seed(seed)
        start = Embedded()
        _train(start, steps, seed, 5e-3)
        for way in (AFTERWARDS, AWARE):
            model = copy.deepcopy(start)
            with quantization_aware(model, ROUNDING) if way == AWARE else nullcontext():
                _train(model, further, seed + 100, 2e-3)
            with torch.no_grad():
                if way == AFTERWARDS:
                    losses[UNROUNDED].append(_loss(model, held_out).item())
                simulate(model, ROUNDING)
                losses[way].append(_loss(model, held_out).item())
    return losses
