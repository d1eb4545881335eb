"""Rabenseifner's all-reduce: reduce-scatter by halving the vector, then all-gather by doubling it again.

Time 2·log₂N·α + 2(N − 1)/N·nβ + (N − 1)/N·nγ for N a power of two (Thakur, Rabenseifner, Gropp 2005, §4.1): the
ring's bytes with far fewer messages. Other N: two more messages of n elements for each extra rank (fold.py).
The distance between partners doubles while the vector halves, so operands keep their order.
"""

import numpy as np

from labs_helpers.collectives.algorithms.fold import fold, unfold
from labs_helpers.collectives.algorithms.messages import exchange
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import combine


def allreduce(comm, source, target, op) -> None:
    """All-reduce source: (n,) into target: (n,) of the same dtype; both may be the same array."""
    if source is not target:
        target[...] = source
    folded = fold(comm, target, op)
    if folded.number is not None:
        _allreduce(comm, target, op, folded)
    unfold(comm, target, folded)


def _allreduce(comm, data, op, folded) -> None:
    bounds = chunk_bounds(data.size, folded.size)
    incoming = np.empty_like(data)
    low, high = 0, folded.size  # the chunks that this rank still works on
    steps = []  # (partner's rank, what was kept, what was given away)
    distance = 1
    while distance < folded.size:
        partner = folded.number ^ distance
        middle = (low + high) // 2
        lower = data[bounds[low][0] : bounds[middle - 1][1]]
        upper = data[bounds[middle][0] : bounds[high - 1][1]]
        if folded.number & distance:
            kept, given, low = upper, lower, middle
        else:
            kept, given, high = lower, upper, middle
        other = folded.rank_of(partner)
        theirs = incoming[: kept.size]
        exchange(comm, given, other, theirs, other)
        combine(op, theirs, kept, theirs_first=partner < folded.number)
        steps.append((other, kept, given))
        distance *= 2
    for other, kept, given in reversed(steps):
        exchange(comm, kept, other, given, other)
