"""Train lab 01's tiny transformer on bytes of text, with part of each batch on every rank."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labs_helpers.course.verdict import one_thread
from labs_helpers.transformer import SIZES, Transformer
from labs_helpers.transformer.text import batches
from labs_helpers.transformer.train import next_token_loss

CONFIG = SIZES["tiny"]
BATCH, LENGTH, RATE, MAX_NORM = 4, 64, 1e-3, 1.0  # sequences per rank, tokens of each, learning rate, clipping


def make_model(device: torch.device | str = "cpu") -> Transformer:
    """Return a model with the same weights on every rank."""
    torch.manual_seed(0)
    return Transformer(CONFIG).to(device)


def loss_of(model: nn.Module, step: int, rank: int) -> Tensor:
    """Return the mean loss, in nats per byte, over one rank's sequences in a step."""
    device = next(model.parameters()).device
    x, y = next(batches("train", BATCH, LENGTH, seed=1000 * step + rank))
    return next_token_loss(model(x.to(device)), y.to(device))


def decay_groups(parameters: Sequence[Tensor]) -> list[dict]:
    """Return parameter groups for `sharded_groups` with weight decay for matrices only."""
    numbers = range(len(parameters))
    return [
        {"params": [i for i in numbers if parameters[i].ndim > 1], "weight_decay": 0.1},
        {"params": [i for i in numbers if parameters[i].ndim == 1], "weight_decay": 0.0},
    ]


def train_alone(
    ranks: int, steps: int, device: torch.device | str = "cpu", decay: bool = True, clip: bool = False
) -> list[float]:
    """Return the losses of one process that takes all ranks' parts. decay: use `decay_groups`; clip: to MAX_NORM."""
    with one_thread():  # small model: with more threads, most would wait for each other
        return _train(make_model(device), ranks, steps, decay, clip)


def _train(model: nn.Module, ranks: int, steps: int, decay: bool, clip: bool) -> list[float]:
    parameters = list(model.parameters())
    groups = [{**group, "params": [parameters[i] for i in group["params"]]} for group in decay_groups(parameters)]
    optimizer = torch.optim.AdamW(groups if decay else parameters, lr=RATE, weight_decay=0.0)
    losses = []
    for step in range(steps):
        loss = sum(loss_of(model, step, rank) for rank in range(ranks)) / ranks
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(parameters, MAX_NORM)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses
