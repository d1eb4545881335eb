"""A pipeline schedule as data: for each rank, the list of its actions in order.

The model is cut into stages; each batch is cut into micro-batches. An action does one thing for one stage and one
micro-batch. Zero-bubble schedules split a backward pass B into I, the gradient of the stage's input, and W, the
gradients of its weights (Qi et al., Zero Bubble Pipeline Parallelism, 2024). Sends, receives and the end of a stash are
actions too, so that a validator can check them; `messages.complete` adds them to a schedule of computations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

FORWARD, BACKWARD, INPUT, WEIGHT = "F", "B", "I", "W"
SEND_OUTPUT, RECEIVE_INPUT = "send output", "receive input"  # an activation, to the next stage
SEND_GRADIENT, RECEIVE_GRADIENT = "send gradient", "receive gradient"  # of a stage's input, to the stage before
FREE = "free"  # the stash of a forward pass
COMPUTE = (FORWARD, BACKWARD, INPUT, WEIGHT)
SENDS = {SEND_OUTPUT: RECEIVE_INPUT, SEND_GRADIENT: RECEIVE_GRADIENT}  # → the action that receives the message
KINDS = (*COMPUTE, *SENDS, *SENDS.values(), FREE)


class Action(NamedTuple):
    """One action of a rank: its kind (one of KINDS), stage and micro-batch, both counted from 0."""

    kind: str
    stage: int
    micro: int

    def __str__(self) -> str:
        name = f"{self.kind}{self.micro}" if self.kind in COMPUTE else f"'{self.kind} {self.micro}'"
        return f"{name} of stage {self.stage}"


Order = tuple[Action, ...]


@dataclass(frozen=True)
class Schedule:
    """The order of actions on every rank. orders: rank → its actions. rank_of: stage → the rank that holds it."""

    name: str
    orders: tuple[Order, ...]
    rank_of: tuple[int, ...]
    micro_batches: int

    @classmethod
    def of(cls, name: str, orders: Sequence[Iterable[Action]], micro_batches: int, chunks: int = 1) -> Schedule:
        """Return the schedule in which rank r holds the stages r, r + p, r + 2 p, …: `chunks` stages on each of the p
        ranks."""
        ranks = len(orders)
        return cls(name, tuple(map(tuple, orders)), tuple(s % ranks for s in range(chunks * ranks)), micro_batches)

    @property
    def ranks(self) -> int:
        return len(self.orders)

    @property
    def stages(self) -> int:
        return len(self.rank_of)

    def held_by(self, rank: int) -> list[int]:
        """Return the stages of a rank, in order."""
        return [stage for stage, holder in enumerate(self.rank_of) if holder == rank]

    def computations(self) -> Schedule:
        """Return the schedule without sends, receives and frees."""
        orders = tuple(tuple(a for a in order if a.kind in COMPUTE) for order in self.orders)
        return Schedule(self.name, orders, self.rank_of, self.micro_batches)

    @cached_property
    def trains(self) -> bool:
        """Whether any action belongs to a backward pass."""
        return any(a.kind in (BACKWARD, INPUT, WEIGHT) for order in self.orders for a in order)

    @cached_property
    def splits_backward(self) -> bool:
        return any(a.kind in (INPUT, WEIGHT) for order in self.orders for a in order)


def needs(action: Action, stages: int, split: bool) -> list[Action]:
    """Return the computations whose results a computation uses. split: the backward passes are I and W."""
    kind, stage, micro = action
    if kind == FORWARD:
        return [Action(FORWARD, stage - 1, micro)] if stage else []
    if kind == WEIGHT:
        return [Action(INPUT, stage, micro)]
    own = [Action(FORWARD, stage, micro)]
    return own + ([Action(INPUT if split else BACKWARD, stage + 1, micro)] if stage + 1 < stages else [])
