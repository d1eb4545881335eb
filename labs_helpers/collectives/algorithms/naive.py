"""All-reduce in the simplest way: every rank sends to rank 0, which reduces and sends the result to every rank.

Rank 0 receives and sends N − 1 messages of n elements, one after another: time 2(N − 1)(α + nβ) + (N − 1)nγ, where α is
the latency of a message, β the time of one element on the wire, and γ that of one operation.
"""

import numpy as np

from labs_helpers.collectives.algorithms.messages import receive, send
from labs_helpers.collectives.operations import combine


def allreduce(comm, source, target, op) -> None:
    """All-reduce source: (n,) into target: (n,) of the same dtype; both may be the same array."""
    rank, size = comm.Get_rank(), comm.Get_size()
    if source is not target:
        target[...] = source
    if rank != 0:
        send(comm, target, 0)
        receive(comm, target, 0)
        return
    incoming = np.empty_like(target)
    for other in range(1, size):
        receive(comm, incoming, other)
        combine(op, incoming, target, theirs_first=False)
    for other in range(1, size):
        send(comm, target, other)
