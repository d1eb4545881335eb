"""Adapt algorithms that pair ranks up to any number of ranks: the extra ranks hand their data to a neighbor.

With N = p + extra ranks and p the largest power of two, each of the first `extra` even ranks sends its vector to the
odd rank above it, which then works for both (Rabenseifner 2004, §2.2). Neighbors keep the order of operands.
"""

from dataclasses import dataclass

import numpy as np

from labs_helpers.collectives.algorithms.messages import receive, send
from labs_helpers.collectives.operations import combine


@dataclass(frozen=True)
class Fold:
    """`size`: p working ranks, numbered 0 … p − 1; `number`: this rank's number, None if another rank works for it."""

    rank: int
    size: int
    extra: int

    @property
    def number(self) -> int | None:
        if self.rank >= 2 * self.extra:
            return self.rank - self.extra
        return self.rank // 2 if self.rank % 2 else None

    @property
    def serves(self) -> bool:
        """Return True if this rank also works for the one below it."""
        return self.rank < 2 * self.extra and self.rank % 2 == 1

    def rank_of(self, number: int) -> int:
        return 2 * number + 1 if number < self.extra else number + self.extra


def fold(comm, data, op) -> Fold:
    """Add the extra ranks' data to their neighbors': one message of n elements each. data: (n,), reduced in place."""
    size, rank = comm.Get_size(), comm.Get_rank()
    power = 1 << (size.bit_length() - 1)
    folded = Fold(rank, power, size - power)
    if folded.number is None:
        send(comm, data, rank + 1)
    elif folded.serves:
        incoming = np.empty_like(data)
        receive(comm, incoming, rank - 1)
        combine(op, incoming, data, theirs_first=True)
    return folded


def unfold(comm, data, folded: Fold) -> None:
    """Send the extra ranks the result: one message of n elements each."""
    if folded.number is None:
        receive(comm, data, folded.rank + 1)
    elif folded.serves:
        send(comm, data, folded.rank - 1)
