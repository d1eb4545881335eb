"""Ring algorithms: every rank sends to the next rank and receives from the previous one, N − 1 times.

Reduce-scatter: (N − 1)(α + n/N·(β + γ)). All-gather: (N − 1)(α + n/N·β). All-reduce runs one after the other: 2(N − 1)
messages per rank and 2(N − 1)/N·n elements, the smallest possible number (Patarasuk and Yuan 2009). n is the length of
the whole vector. A chunk is summed in the order of the ring, so op must be commutative.
"""

import numpy as np

from labs_helpers.collectives.algorithms.messages import exchange
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import reduce_local


def _reduce_chunks(comm, chunks, op, last: int) -> None:
    """Run N − 1 steps, after which chunk `last` holds the sum over all ranks. The other chunks hold partial sums.

    chunks: N views of one rank's vector. In step s this rank passes on chunk last − 1 − s.
    """
    size, rank = comm.Get_size(), comm.Get_rank()
    incoming = np.empty_like(chunks[0])  # no chunk is longer than the first
    for step in range(size - 1):
        outgoing, own = chunks[(last - 1 - step) % size], chunks[(last - 2 - step) % size]
        theirs = incoming[: own.size]
        exchange(comm, outgoing, (rank + 1) % size, theirs, (rank - 1) % size)
        reduce_local(op, theirs, own)


def _gather_chunks(comm, chunks, first: int) -> None:
    """Give every rank all chunks. Each rank starts with one complete chunk, this one with `first`."""
    size, rank = comm.Get_size(), comm.Get_rank()
    for step in range(size - 1):
        outgoing, incoming = chunks[(first - step) % size], chunks[(first - 1 - step) % size]
        exchange(comm, outgoing, (rank + 1) % size, incoming, (rank - 1) % size)


def allreduce(comm, source, target, op) -> None:
    """All-reduce source: (n,) into target: (n,) of the same dtype; both may be the same array."""
    size, rank = comm.Get_size(), comm.Get_rank()
    if source is not target:
        target[...] = source
    chunks = [target[start:stop] for start, stop in chunk_bounds(target.size, size)]
    _reduce_chunks(comm, chunks, op, last=rank)
    _gather_chunks(comm, chunks, first=rank)


def reduce_scatter(comm, source, target, op) -> None:
    """Reduce-scatter source: (n,), unchanged, into target: this rank's chunk of the sum, of the length in
    `chunk_bounds(n, N)`."""
    size, rank = comm.Get_size(), comm.Get_rank()
    work = source.copy()
    chunks = [work[start:stop] for start, stop in chunk_bounds(work.size, size)]
    _reduce_chunks(comm, chunks, op, last=rank)
    target[...] = chunks[rank]


def allgather(comm, source, target) -> None:
    """All-gather source: (n/N,), this rank's block, into target: (n,), the blocks of all ranks in their order."""
    size, rank = comm.Get_size(), comm.Get_rank()
    blocks = target.reshape(size, source.size)
    blocks[rank] = source
    _gather_chunks(comm, blocks, first=rank)
