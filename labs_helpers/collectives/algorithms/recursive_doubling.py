"""All-reduce by recursive doubling: log₂N exchanges of the whole vector, with the ranks 1, 2, 4 … away.

Time log₂N·(α + n(β + γ)) for N a power of two (Thakur, Rabenseifner, Gropp 2005, §4.1). It needs the fewest messages,
so it suits short vectors. Other N: two more messages of n elements for each extra rank (fold.py). Operands keep their
order, so op need not be commutative.
"""

import numpy as np

from labs_helpers.collectives.algorithms.fold import fold, unfold
from labs_helpers.collectives.algorithms.messages import exchange
from labs_helpers.collectives.operations import combine


def allreduce(comm, source, target, op) -> None:
    """All-reduce source: (n,) into target: (n,) of the same dtype; both may be the same array."""
    if source is not target:
        target[...] = source
    folded = fold(comm, target, op)
    if folded.number is not None:
        incoming = np.empty_like(target)
        distance = 1
        while distance < folded.size:
            partner = folded.number ^ distance
            other = folded.rank_of(partner)
            exchange(comm, target, other, incoming, other)
            combine(op, incoming, target, theirs_first=partner < folded.number)
            distance *= 2
    unfold(comm, target, folded)
