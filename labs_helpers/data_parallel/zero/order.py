"""Which unit will be needed next, so that it can be gathered meanwhile, and whether all ranks agree on that order."""

from __future__ import annotations

from collections import deque

import torch

from labs_helpers.communication import Communication
from labs_helpers.data_parallel.same_model import first_difference
from labs_helpers.data_parallel.zero.unit import Unit


class Order:
    """Forward, a unit is followed by the one that followed it the last time; backward, by the one that came before it
    forward. A wrong guess costs a gather in vain, the same on all ranks. prefetch=False guesses nothing, to compare."""

    def __init__(self, prefetch: bool) -> None:
        self.prefetch = prefetch
        self.followers: dict[Unit, Unit] = {}
        self.last: Unit | None = None
        self.ran: list[Unit] = []  # forward, and not yet backward
        self.started: deque[str] = deque(maxlen=10_000)  # the collectives of this pass, the last ones of many

    def next_forward(self, unit: Unit, first: bool) -> None:
        """unit is about to compute. first: with it a forward pass begins."""
        if self.last is not None and not first:
            self.followers[self.last] = unit
        self.last = unit
        if torch.is_grad_enabled():
            self.ran.append(unit)
        self._start(self.followers.get(unit))

    def next_backward(self, unit: Unit) -> None:
        if self.ran and self.ran[-1] is unit:
            self.ran.pop()
        self._start(self.ran[-1] if self.ran else None)

    def forget(self) -> None:
        """A pass is over."""
        self.last, self.ran = None, []

    def require_same(self, group: Communication) -> None:
        """RuntimeError on every rank where ranks have started collectives of different units, or in another order. The
        shards of different units have been mixed then, which nobody would notice if they are equally large."""
        difference = first_difference(list(self.started), group)
        self.started.clear()
        if difference:
            number, _, told = difference
            raise RuntimeError(
                "the ranks have not called the same units in the same order, so that shards of different units were "
                f"mixed. They differ first at collective {number + 1} of this pass:\n{told}"
            )

    def _start(self, unit: Unit | None) -> None:
        if unit is not None and self.prefetch:
            unit.start_gather()
