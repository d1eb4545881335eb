"""Describe how to train a model: `Setup` holds choices that affect time and memory, and ORDERS the orders to apply
them in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from labs_helpers.transformer.attentions import ATTENTIONS

PRECISIONS = {
    "fp32": torch.float32,
    "tf32": torch.float32,  # every product rounds float32 to a 10-bit mantissa for the tensor cores
    "fp16": torch.float32,  # autocast, with a scaled loss
    "bf16-autocast": torch.float32,
    "bf16": torch.bfloat16,
}  # → dtype of parameters, gradients and moments
AUTOCAST = {"fp16": torch.float16, "bf16-autocast": torch.bfloat16}
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "for-loop": {"foreach": False},
    "foreach": {"foreach": True},
    "fused": {"fused": True},
}


@dataclass(frozen=True)
class Setup:
    """One way to train; by default PyTorch's own in float32. ValueError names a field whose value does not exist."""

    attention: str = "plain"  # of attentions.ATTENTIONS
    precision: str = "fp32"  # of PRECISIONS
    compiled: bool = False  # torch.compile of model and loss as one graph
    graph: bool = False  # the whole step from one CUDA graph
    optimizer: str = "foreach"  # of OPTIMIZERS: how AdamW's update is launched
    segments: int = 0  # number of checkpointed segments of blocks; 0: none
    accumulate: int = 1  # micro-batches per step
    regional: bool = False  # compiled block by block instead, which PyTorch calls regional compilation

    def __post_init__(self) -> None:
        for name, known in (("attention", ATTENTIONS), ("precision", PRECISIONS), ("optimizer", OPTIMIZERS)):
            value = getattr(self, name)
            if not isinstance(value, str) or value not in known:
                raise ValueError(f"{name} is {value!r}; it may be {', '.join(map(repr, known))}")
        for name in ("compiled", "regional", "graph"):
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}, not yes or no")
        for name, least in (("segments", 0), ("accumulate", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise ValueError(f"{name} is {value!r}, not an integer of {least} or more")
        if self.regional and not self.compiled:
            raise ValueError("regional is True without compiled: it is a way to compile")
        if self.graph and self.precision == "fp16":
            raise ValueError(
                "graph is True with precision 'fp16': between gradients and update GradScaler asks the CPU"
            )

    def __str__(self) -> str:
        words = [self.attention, self.precision, *["compiled"] * self.compiled, *["by block"] * self.regional]
        words += [self.optimizer]
        words += ["graph"] * self.graph
        words += [f"{self.segments} segment{'s' * (self.segments > 1)}"] * (self.segments > 0)
        words += [f"{self.accumulate} micro-batches"] * (self.accumulate > 1)
        return " ".join(words)


# The remedies with which lab 01 speeds up a step, and three orders to apply them in.
REMEDIES: dict[str, dict[str, Any]] = {
    "bf16": {"precision": "bf16"},
    "flash": {"attention": "flash"},
    "compiled": {"compiled": True},
    "fused": {"optimizer": "fused"},
    "graph": {"graph": True},
}
ORDERS = {
    "arithmetic first": ("bf16", "flash", "compiled", "fused", "graph"),
    "launches first": ("graph", "fused", "compiled", "flash", "bf16"),
    "compiler first": ("compiled", "bf16", "graph", "flash", "fused"),
}
# The remedies of the lab's table, one after another, as in `configurations/remedies.yaml`.
TREATMENT: dict[str, dict[str, Any]] = {
    "tf32": {"precision": "tf32"},
    "bf16": {"precision": "bf16"},
    "sdpa": {"attention": "sdpa"},
    "flash": {"attention": "flash"},
    "fused": {"optimizer": "fused"},
    "compiled": {"compiled": True},
    "by block": {"regional": True},
}


def walk(order: str, start: Setup | None = None) -> dict[str, Setup]:
    """Return {"start": start, remedy: the setup with it and all earlier ones, …} along one of ORDERS. ValueError for
    another order."""
    if order not in ORDERS:
        raise ValueError(f"orders has {order!r}; there are {', '.join(map(repr, ORDERS))}")
    return _one_after_another({remedy: REMEDIES[remedy] for remedy in ORDERS[order]}, start)


def treatment(start: Setup | None = None) -> dict[str, Setup]:
    """Return {"start": start, remedy: the setup with it and all earlier ones, …} along TREATMENT."""
    return _one_after_another(TREATMENT, start)


def _one_after_another(remedies: Mapping[str, dict[str, Any]], start: Setup | None) -> dict[str, Setup]:
    setup = start or Setup()
    path = {"start": setup}
    for remedy, change in remedies.items():
        setup = dataclasses.replace(setup, **change)
        path[remedy] = setup
    return path
