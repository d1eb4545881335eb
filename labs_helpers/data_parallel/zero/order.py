"""Predict the next unit so that it can be prefetched, and check that all ranks agree on the order."""

from __future__ import annotations

from collections import deque

import torch

from labs_helpers.communication import Communication
from labs_helpers.data_parallel.same_model import first_difference
from labs_helpers.data_parallel.zero.unit import Unit


class Order:
    """The order of units, predicted from earlier calls.

    In the forward pass, a unit is followed by the same unit as last time. In the backward pass, the order is reversed.
    A wrong guess costs one wasted gather on every rank. prefetch=False disables prediction, for comparison.
    """

    def __init__(self, prefetch: bool) -> None:
        self.prefetch = prefetch
        self.followers: dict[Unit, Unit] = {}
        self.last: Unit | None = None
        self.ran: list[Unit] = []  # units that ran forward, but not yet backward
        self.started: deque[str] = deque(maxlen=10_000)  # collectives of this pass, at most the last ones

    def next_forward(self, unit: Unit, first: bool) -> None:
        """Prefetch for the forward pass before `unit` computes. first: this call begins a forward pass."""
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
        """Clear the record of a completed pass."""
        self.last, self.ran = None, []

    def require_same(self, group: Communication) -> None:
        """Raise RuntimeError on every rank if the ranks started collectives of different units, or in different orders.

        The shards of different units are then mixed, which nothing else would reveal if they have the same size.
        """
        difference = first_difference(list(self.started), group)
        self.started.clear()
        if difference:
            number, _, told = difference
            raise RuntimeError(
                "the ranks have not called the same units in the same order, so shards of different units were "
                f"mixed. They differ first at collective {number + 1} of this pass:\n{told}"
            )

    def _start(self, unit: Unit | None) -> None:
        if unit is not None and self.prefetch:
            unit.start_gather()
