"""All-reduce and all-to-all through memory that the ranks of a node share (segment.py): no messages at all.

All-reduce, short vectors: everybody shows its vector, and after one barrier reduces all of them itself. Long
vectors go block by block: everybody shows its block; each rank reduces its slice of it from all ranks' slots;
everybody copies the result. A block's result is fetched after the barrier that also announces the next block, so
there is one barrier a block, and slots stay in the cache: main memory sees each vector once in and once out.
Operands keep their ranks' order, so that all ranks get the same bits and op need not be commutative.
"""

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import reduce_rows
from labs_helpers.collectives.segment import segment_of
from labs_helpers.collectives.single_copy import address_of

DIRECT_BYTES = 4096  # up to here every rank reduces the whole vector: N times the work, but one barrier fewer
SINGLE_COPY_BYTES = 32 * 2**10  # of a block: from here on one copy by the kernel is quicker than two of our own


def allreduce(comm, source, target, op) -> None:
    """source: (n,), target: (n,) of the same dtype; the two may be one array."""
    segment = segment_of(comm)
    if segment.size == 1 or target.size == 0:
        target[...] = source
    elif target.nbytes <= DIRECT_BYTES:
        own, every, _ = segment.views(target.dtype, target.shape)
        own[...] = source
        segment.barrier()
        reduce_rows(op, every, target)
    else:
        _allreduce_blocks(segment, source, target, op)


def _allreduce_blocks(segment, source, target, op) -> None:
    result, whole = None, None  # of the block before: what its ranks computed, where it goes
    for start, stop in _blocks(target.size, segment.block // target.itemsize):
        own, every, next_result = segment.views(target.dtype, (stop - start,))
        own[...] = source[start:stop]
        segment.barrier()
        first, last = chunk_bounds(stop - start, segment.size)[segment.rank]
        if last > first:
            reduce_rows(op, every[:, first:last], next_result[first:last])
        if result is not None:
            whole[...] = result
        result, whole = next_result, target[start:stop]
    segment.barrier()
    whole[...] = result


def alltoall(comm, source, target) -> None:
    """source: (n,), block r of n/N elements is for rank r. target: (n,), block r comes from rank r.

    Everybody shows a part of every block, and after a barrier takes its own from all slots. Long blocks are read
    from the other's memory directly where the system allows it.
    """
    segment = segment_of(comm)
    size, rank = segment.size, segment.rank
    if size == 1 or target.size == 0:
        target[...] = source
        return
    outgoing, incoming = source.reshape(size, -1), target.reshape(size, -1)
    if target.nbytes <= DIRECT_BYTES:
        own, every, _ = segment.views(target.dtype, outgoing.shape)
        own[...] = outgoing
        segment.barrier()
        incoming[...] = every[:, rank]
        return
    others = [(rank + away) % size for away in range(1, size)]  # nobody's block is read by all at once
    if segment.neighbours.allowed and target.nbytes >= size * SINGLE_COPY_BYTES:
        _read_blocks(segment, outgoing, incoming, others)
    else:
        _show_blocks(segment, outgoing, incoming, others)
    incoming[rank] = outgoing[rank]


def _show_blocks(segment, outgoing, incoming, others) -> None:
    longest = segment.block // (segment.size * outgoing.itemsize)
    for start, stop in _blocks(outgoing.shape[1], longest):
        own, every, _ = segment.views(outgoing.dtype, (segment.size, stop - start))
        for dest in others:
            own[dest] = outgoing[dest, start:stop]
        segment.barrier()
        for origin in others:
            incoming[origin, start:stop] = every[origin, segment.rank]


def _read_blocks(segment, outgoing, incoming, others) -> None:
    """One copy instead of two. Everybody shows where its data lies, and waits at the end until all have read it."""
    own, every, _ = segment.views(np.dtype(np.int64), (1,))
    own[0] = address_of(outgoing)
    segment.barrier()
    for origin in others:
        block = segment.rank * outgoing[0].nbytes
        segment.neighbours.read(origin, int(every[origin, 0]) + block, incoming[origin])
    segment.barrier()


def _blocks(n: int, longest: int):
    return ((start, min(start + longest, n)) for start in range(0, n, longest))
