"""What one rank holds of a model's states, by stage and layout: each number with the formula that it comes from.

Ψ: the model's parameters. N: data-parallel ranks. GB = 1e9 bytes. Rajbhandari et al., ZeRO, 2020, whose K = 12 is the
optimizer's share of the 16 bytes. States only; `memory.py` adds what a step needs beside them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from labs_helpers.transformer.counts import LAYOUTS as COUNTED
from labs_helpers.transformer.counts.known import expect_known

if TYPE_CHECKING:
    pass

GB = 1e9
PARTS = ("parameters", "gradients", "optimizer")


class Layout(NamedTuple):
    """Bytes per parameter. Collectives move parameters and gradients as they are stored."""

    parameters: int
    gradients: int
    optimizer: int  # AdamW's two moments, and float32 copies of what is stored in 16 bits
    master: bool = False  # whether a float32 copy of the parameters is among them

    @property
    def each(self) -> int:
        """All of them: 16 in the ZeRO paper."""
        return self.parameters + self.gradients + self.optimizer

    @property
    def update_bytes(self) -> int:
        """Bytes per parameter that AdamW reads and writes: it reads the gradient, reads and writes its states, and the
        parameter too, unless the states hold a copy to read."""
        return self.gradients + 2 * self.optimizer + self.parameters * (1 if self.master else 2)


DEFAULT = "bf16 with float32 master"
LAYOUTS = {name: Layout(*sizes, master="master" in name) for name, sizes in COUNTED.items()} | {
    # Megatron-Core's page on its distributed optimizer has 16 (as autocast's), 18 and 20 bytes.
    "bf16 with float32 master and gradients": Layout(2, 4, 12, master=True),
    "fp16 with float32 copies of both": Layout(2, 2, 16, master=True),
}

# Which parts are divided over the data-parallel ranks.
STAGES: dict[str, tuple[str, ...]] = {
    "DDP": (),
    "ZeRO-1": ("optimizer",),
    "ZeRO-2": ("gradients", "optimizer"),
    "SHARD_GRAD_OP": PARTS,  # parameters between the steps alone: in a step the whole is there, beside the shard
    "ZeRO-3": PARTS,
}


class Part(NamedTuple):
    """So many bytes of one rank, and the formula."""

    name: str
    bytes: float
    formula: str


def states(count: float, stage: str, ranks: int, layout: str = DEFAULT, whole_gradients: bool = False) -> list[Part]:
    """Parameters, gradients and the optimizer's states of one rank, of `count` parameters.

    whole_gradients: they are kept whole although the stage divides them, as within `no_sync()`. SHARD_GRAD_OP: between
    two steps. Shards are taken to be equal; padding adds less than N elements to a tensor.
    ValueError for another stage or layout, and for ranks below 1.
    """
    expect_known("stage", stage, STAGES)
    expect_known("layout", layout, LAYOUTS)
    if ranks < 1:
        raise ValueError(f"ranks is {ranks}; it has to be 1 or more")
    found = []
    for name, each in zip(PARTS, LAYOUTS[layout][:3], strict=True):
        divided = name in STAGES[stage] and not (whole_gradients and name == "gradients")
        found.append(Part(name, each * count / (ranks if divided else 1), f"{each} Ψ / N" if divided else f"{each} Ψ"))
    return found


def total(parts: list[Part]) -> float:
    """Their bytes together."""
    return sum(part.bytes for part in parts)


def bytes_per_parameter(stage: str, ranks: int, layout: str = DEFAULT) -> float:
    """All states of one rank, in bytes per parameter of the model: 16 under DDP, (2 + 14 / N) under ZeRO-2 …"""
    return total(states(1, stage, ranks, layout))
