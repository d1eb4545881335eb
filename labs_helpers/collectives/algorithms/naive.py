"""All-reduce the plain way: everybody sends to rank 0, which reduces and sends the result to everybody.

Rank 0 receives and sends N − 1 messages of n elements, one after another: time 2(N − 1)(α + nβ) + (N − 1)nγ,
with α the latency of a message, β the time of one element on the wire, γ that of one operation.
"""

import numpy as np

from labs_helpers.collectives.algorithms.messages import receive, send
from labs_helpers.collectives.operations import combine


def allreduce(comm, source, target, op) -> None:
    """source: (n,), target: (n,) of the same dtype; the two may be one array."""
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
