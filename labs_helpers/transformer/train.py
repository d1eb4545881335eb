"""A short training loop on `text`, and the loss on a fixed validation sample."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labs_helpers.transformer.text import batches, validation_sample


def next_token_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross-entropy in nats per token, in float32. logits: (B, L, V); targets: (B, L) of int64."""
    return F.cross_entropy(logits.flatten(0, -2).float(), targets.flatten())


def learning_rate(step: int, steps: int, peak: float) -> float:
    """Return the learning rate, which grows linearly over the first tenth of the steps, then falls along a cosine to
    a tenth of `peak`."""
    warm_up = max(1, steps // 10)
    if step < warm_up:
        return peak * (step + 1) / warm_up
    done = (step - warm_up) / max(1, steps - warm_up)
    return peak * (0.55 + 0.45 * math.cos(math.pi * done))


def adamw(model: nn.Module, lr: float, **options: Any) -> torch.optim.AdamW:
    """Return AdamW with betas (0.9, 0.95) and weight decay 0.1 on matrices, none on norms. options: more of AdamW's
    arguments, such as fused=True."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    norms = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": norms, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=lr, betas=(0.9, 0.95), **options)


def train(
    model: nn.Module,
    steps: int,
    batch: int,
    length: int,
    lr: float,
    seed: int,
    on_step: Callable[[int, Tensor], None] | None = None,
    **options: Any,
) -> list[float]:
    """Train a model of bytes in place, on its own device; return the loss of each step in nats per byte.

    batch: sequences per step, of `length` bytes each, from `batches("train", …, seed)`. lr: the peak of
    `learning_rate`. Gradients are clipped to norm 1. on_step(step, loss) is called after each step; reading the loss
    waits for the GPU. options: of `adamw`.
    """
    device = next(model.parameters()).device
    optimizer, losses = adamw(model, lr, **options), []
    model.train()
    for step, (x, y) in zip(range(steps), batches("train", batch, length, seed), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps, lr)
        optimizer.zero_grad(set_to_none=True)
        loss = next_token_loss(model(x.to(device)), y.to(device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.detach())
        if on_step is not None:
            on_step(step, loss.detach())
    return torch.stack(losses).tolist() if losses else []


@torch.no_grad()
def evaluate(model: nn.Module, length: int, windows: int = 256, batch: int = 32) -> float:
    """Return the nats per byte over `validation_sample(windows, length)`, `batch` windows at a time."""
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    total = 0.0
    for x, y in zip(*(part.split(batch) for part in validation_sample(windows, length)), strict=True):
        total += next_token_loss(model(x.to(device)), y.to(device)).item() * len(x)
    model.train(was_training)
    return total / windows
