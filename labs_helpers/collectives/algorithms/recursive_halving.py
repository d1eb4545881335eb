"""Reduce-scatter by recursive halving: log₂N exchanges of half the vector, a quarter, an eighth …

Time log₂N·α + (N − 1)/N·n(β + γ) for N a power of two (Thakur, Rabenseifner, Gropp 2005, §3.2). Other N: each extra
rank sends its n elements and receives its chunk (fold.py). The first partner is the farthest, so that each rank ends
with its own chunk. Operands change their order, so op must be commutative.
"""

import numpy as np

from labs_helpers.collectives.algorithms.fold import Fold, fold
from labs_helpers.collectives.algorithms.messages import exchange, receive, send
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import reduce_local


def reduce_scatter(comm, source, target, op) -> None:
    """Reduce-scatter source: (n,), unchanged, into target: this rank's chunk of the sum, of the length in
    `chunk_bounds(n, N)`."""
    rank = comm.Get_rank()
    work = source.copy()
    bounds = chunk_bounds(work.size, comm.Get_size())
    folded = fold(comm, work, op)
    if folded.number is None:
        receive(comm, target, rank + 1)
        return
    _halve(comm, work, op, folded, bounds)
    if folded.serves:
        send(comm, work[slice(*bounds[rank - 1])], rank - 1)
    target[...] = work[slice(*bounds[rank])]


def _halve(comm, work, op, folded: Fold, bounds) -> None:
    def edge(number: int) -> int:
        """Return where the chunks of working rank `number` begin; one that serves another rank has two."""
        first = 2 * number if number < folded.extra else number + folded.extra
        return bounds[first][0] if number < folded.size else work.size

    incoming = np.empty_like(work)
    low, high = 0, folded.size  # the working ranks whose chunks this rank still sums
    while high - low > 1:
        middle = (low + high) // 2
        distance = middle - low
        lower, upper = work[edge(low) : edge(middle)], work[edge(middle) : edge(high)]
        if folded.number < middle:
            partner, kept, given, high = folded.number + distance, lower, upper, middle
        else:
            partner, kept, given, low = folded.number - distance, upper, lower, middle
        other = folded.rank_of(partner)
        theirs = incoming[: kept.size]
        exchange(comm, given, other, theirs, other)
        reduce_local(op, theirs, kept)
