"""Model states of one rank by stage and layout, each number with its formula.

Ψ: the model's parameters. N: data-parallel ranks. GB = 1e9 bytes. Rajbhandari et al., ZeRO, 2020, where the optimizer's
share of the 16 bytes is K = 12. This module counts only states; `memory.py` adds everything else that a step needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.transformer.counts import LAYOUTS as COUNTED
from labs_helpers.transformer.counts.known import expect_known

if TYPE_CHECKING:
    pass

GB = 1e9
PARTS = ("parameters", "gradients", "optimizer")


class StateBytes(NamedTuple):
    """Bytes per parameter. Collectives send parameters and gradients in their stored dtypes."""

    parameters: int
    gradients: int
    optimizer: int  # AdamW's two moments, and float32 copies of 16-bit tensors
    master: bool = False  # whether these copies include one of the parameters

    @property
    def each(self) -> int:
        """Bytes per parameter of all states, 16 in the ZeRO paper."""
        return self.parameters + self.gradients + self.optimizer

    @property
    def update_bytes(self) -> int:
        """Bytes per parameter that AdamW reads and writes.

        It reads the gradient, and reads and writes its states and the parameter. If the states include a float32 copy,
        it reads the copy and only writes the parameter.
        """
        return self.gradients + 2 * self.optimizer + self.parameters * (1 if self.master else 2)


DEFAULT = "bf16 with float32 master"
LAYOUTS = {name: StateBytes(*sizes, master="master" in name) for name, sizes in COUNTED.items()} | {
    # Megatron-Core's page on its distributed optimizer lists 16 (as with autocast), 18, and 20 bytes.
    "bf16 with float32 master and gradients": StateBytes(2, 4, 12, master=True),
    "fp16 with float32 copies of both": StateBytes(2, 2, 16, master=True),
}

# States that each stage divides over the data-parallel ranks.
STAGES: dict[str, tuple[str, ...]] = {
    "DDP": (),
    "ZeRO-1": ("optimizer",),
    "ZeRO-2": ("gradients", "optimizer"),
    "SHARD_GRAD_OP": PARTS,  # parameters only between steps: during a step, the whole exists in addition to the shard
    "ZeRO-3": PARTS,
}


class Part(NamedTuple):
    """Bytes of one kind of state on one rank, with the formula."""

    name: str
    bytes: float
    formula: str


def states(count: float, stage: str, ranks: int, layout: str = DEFAULT, whole_gradients: bool = False) -> list[Part]:
    """Return the parameters, gradients, and optimizer states of one rank, for a model of `count` parameters.

    whole_gradients: keep gradients whole even if the stage divides them, as inside `no_sync()`. SHARD_GRAD_OP is
    counted between two steps. Shards count as equal; padding adds fewer than N elements per tensor. Raise ValueError
    for an unknown stage or layout, and for ranks below 1.
    """
    expect_known("stage", stage, STAGES)
    expect_known("layout", layout, LAYOUTS)
    if ranks < 1:
        raise ValueError(f"ranks is {ranks}; it must be at least 1")
    found = []
    for name, each in zip(PARTS, LAYOUTS[layout][:3], strict=True):
        divided = name in STAGES[stage] and not (whole_gradients and name == "gradients")
        found.append(Part(name, each * count / (ranks if divided else 1), f"{each} Ψ / N" if divided else f"{each} Ψ"))
    return found


def total(parts: list[Part]) -> float:
    """Return the sum of the parts in bytes."""
    return sum(part.bytes for part in parts)


def bytes_per_parameter(stage: str, ranks: int, layout: str = DEFAULT) -> float:
    """Return all states of one rank in bytes per parameter: 16 under DDP, (2 + 14 / N) under ZeRO-2 …"""
    return total(states(1, stage, ranks, layout))
