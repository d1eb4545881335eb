"""Which unit will be needed next, so that it can be gathered meanwhile."""

from __future__ import annotations

import torch

from labs_helpers.data_parallel.zero.unit import Unit


class Order:
    """Forward, a unit is followed by the one that followed it the last time; backward, by the one that came before it
    forward. A wrong guess costs a gather in vain, the same on all ranks. prefetch=False guesses nothing, to compare."""

    def __init__(self, prefetch: bool) -> None:
        self.prefetch = prefetch
        self.followers: dict[Unit, Unit] = {}
        self.last: Unit | None = None
        self.ran: list[Unit] = []  # forward, and not yet backward

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

    def _start(self, unit: Unit | None) -> None:
        if unit is not None and self.prefetch:
            unit.start_gather()
