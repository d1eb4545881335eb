"""The quality of a quantized model: its loss on a fixed part of the validation text, and how much that differs."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labs_helpers.transformer.text import validation_sample


@torch.no_grad()
def losses(model: nn.Module, windows: int = 64, length: int = 256, parts: int = 8, batch: int = 32) -> Tensor:
    """Return the mean loss of each part of `validation_sample(windows, length)`: (parts,) of nats per byte, float64.

    Every part has windows from all over the text: part i has windows i, i + parts, … batch: windows at a time.
    ValueError if the parts would not be equally large.
    """
    if windows % parts:
        raise ValueError(f"{windows} windows cannot be divided into {parts} parts")
    device = next(model.parameters()).device
    was_training = model.training
    model.eval()
    found = []
    for x, y in zip(*(part.split(batch) for part in validation_sample(windows, length)), strict=True):
        logits = model(x.to(device)).float()
        found.append(F.cross_entropy(logits.mT, y.to(device), reduction="none").double().mean(dim=1))
    model.train(was_training)
    return torch.cat(found).view(-1, parts).mean(dim=0).cpu()


class Difference(NamedTuple):
    """How much worse a model is than another one, in nats per byte: the mean over the parts, and its standard error."""

    mean: float
    error: float


def difference(quantized: Tensor, original: Tensor) -> Difference:
    """Compare two results of `losses`, (parts,) each, part by part.

    How hard the parts are differs far more than two models do. It cancels out, because both read the same parts.
    """
    by_part = quantized - original
    return Difference(by_part.mean().item(), by_part.std().item() / len(by_part) ** 0.5)
