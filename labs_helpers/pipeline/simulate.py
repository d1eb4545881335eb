"""Predict a schedule's timeline from the times of its actions: who works when, the bubble, and the stashes.

A rank runs its computations in order; each starts when the rank is free and its message has arrived. Messages take
`transfer` seconds and follow one another between two ranks; sending costs the ranks nothing, as on a GPU with NVLink.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from labs_helpers.pipeline.messages import complete, message_after, message_for, received_by
from labs_helpers.pipeline.schedule import BACKWARD, FORWARD, INPUT, WEIGHT, Action, Schedule
from labs_helpers.pipeline.validate import check

PerStage = float | Sequence[float]


@dataclass(frozen=True)
class Times:
    """Seconds (or any unit) of one micro-batch on a stage: a number for all stages, or one per stage.

    forward, input, weight: of F, I and W. backward: of B; None: I and W together. transfer: of a message.
    """

    forward: PerStage = 1.0
    input: PerStage = 1.0
    weight: PerStage = 1.0
    backward: PerStage | None = None
    transfer: float = 0.0

    def of(self, action: Action) -> float:
        """Return the time of a computation."""
        if action.kind == BACKWARD and self.backward is None:
            return _at(self.input, action.stage) + _at(self.weight, action.stage)
        by_kind = {FORWARD: self.forward, BACKWARD: self.backward, INPUT: self.input, WEIGHT: self.weight}
        value = by_kind[action.kind]
        assert value is not None
        return _at(value, action.stage)


def _at(value: PerStage, stage: int) -> float:
    return value if isinstance(value, int | float) else value[stage]


class Bar(NamedTuple):
    """One computation of a timeline, from start to stop."""

    rank: int
    action: Action
    start: float
    stop: float


class Timeline(NamedTuple):
    """The computations of all ranks over time, measured or predicted."""

    name: str
    ranks: int
    bars: list[Bar]

    @property
    def seconds(self) -> float:
        """The time from the first computation's start to the last one's end."""
        return max(bar.stop for bar in self.bars) - min(bar.start for bar in self.bars)

    @property
    def busy(self) -> list[float]:
        """The time that each rank computes."""
        return [sum(bar.stop - bar.start for bar in self.bars if bar.rank == rank) for rank in range(self.ranks)]

    @property
    def bubble_share(self) -> float:
        """The share of all ranks' time in which they wait."""
        return 1 - sum(self.busy) / (self.ranks * self.seconds)

    def stashes(self, rank: int) -> list[tuple[float, int]]:
        """Return (time, stashes that the rank holds from then on), in the order of time."""
        changes = [(bar.stop, 1) for bar in self.bars if bar.rank == rank and bar.action.kind == FORWARD]
        changes += [(bar.stop, -1) for bar in self.bars if bar.rank == rank and bar.action.kind in (BACKWARD, WEIGHT)]
        held, curve = 0, []
        for time, change in sorted(changes):
            held += change
            curve.append((time, held))
        return curve


def simulate(schedule: Schedule, times: Times | None = None) -> Timeline:
    """Return the predicted timeline. Raises InvalidSchedule (see `validate.check`)."""
    times = times or Times()
    schedule = complete(schedule)
    check(schedule)
    orders = schedule.computations().orders
    free_at, at = [0.0] * schedule.ranks, [0] * schedule.ranks
    ready: dict[Action, float] = {}  # when each message has arrived
    link_free: dict[tuple[int, int], float] = {}
    bars: list[Bar] = []
    while any(at[rank] < len(order) for rank, order in enumerate(orders)):
        for rank, order in enumerate(orders):
            while at[rank] < len(order):
                action = order[at[rank]]
                message = message_for(schedule, action)
                if message is not None and message not in ready:
                    break
                start = max(free_at[rank], ready[message] if message is not None else 0.0)
                free_at[rank] = stop = start + times.of(action)
                bars.append(Bar(rank, action, start, stop))
                at[rank] += 1
                if (send := message_after(schedule, action)) is not None:
                    received = received_by(send)
                    assert received is not None
                    link = rank, schedule.rank_of[received.stage]
                    link_free[link] = ready[received] = max(stop, link_free.get(link, 0.0)) + times.transfer
    return Timeline(schedule.name, schedule.ranks, sorted(bars, key=lambda bar: (bar.start, bar.rank)))
