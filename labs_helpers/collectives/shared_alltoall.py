"""All-to-all through memory that the ranks of a node share (segment.py): no messages at all.

Everybody shows what it sends, and after a barrier takes its own block from all slots. Long blocks are read from the
other's memory directly where the system allows it (single_copy.py), with a second thread where cores are idle: one
core alone does not use all of the memory's bandwidth.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from labs_helpers.collectives.operations import find_mpi
from labs_helpers.collectives.segment import segment_of

AT_ONCE_BYTES = 64 * 2**10  # up to here one copy of all blocks costs less than a copy for each of them
SINGLE_COPY_BYTES = 64 * 2**10  # of a block: from here on one copy by the kernel is quicker than two of our own
THREAD_BYTES = 128 * 2**10  # of a block: from here on a second thread is worth its waking
PIECE_BYTES = 2**20  # what a thread takes at once

_helper = ThreadPoolExecutor(1, "alltoall")  # its thread starts at the first use


def alltoall(comm, source, target) -> None:
    """source: (n,), block r of n/N elements is for rank r. target: (n,), block r comes from rank r."""
    segment = segment_of(comm)
    size = segment.size
    if size == 1 or target.size == 0:
        target[...] = source
    elif target.nbytes < size * SINGLE_COPY_BYTES or not segment.neighbours.allowed:
        outgoing, incoming = source.reshape(size, -1), target.reshape(size, -1)
        longest = segment.block // (size * target.itemsize)
        for start in range(0, outgoing.shape[1], longest):
            part = slice(start, start + longest)
            _show_blocks(segment, outgoing[:, part], incoming[:, part])
    else:
        _read_blocks(segment, source, target)


def _show_blocks(segment, outgoing, incoming) -> None:
    rank = segment.rank
    own, mine = segment.next_block(_show, outgoing.dtype, outgoing.shape)
    if own.nbytes <= AT_ONCE_BYTES:
        own[...] = outgoing
        segment.barrier()
        incoming[...] = mine
    else:
        own[:rank], own[rank + 1 :] = outgoing[:rank], outgoing[rank + 1 :]
        segment.barrier()
        for origin in segment.others:  # so that not all read from the same one at once
            incoming[origin] = mine[origin]
        incoming[rank] = outgoing[rank]


def _show(segment, odd: bool, dtype, shape):
    """The own slot (N, m), and in all slots the blocks for this rank (N, m)."""
    every = segment.slots(odd, dtype, shape)
    return every[segment.rank], every[:, segment.rank]


def _read_blocks(segment, source, target) -> None:
    """Everybody shows where its data lies, and waits at the end until all have read it."""
    rank, nbytes = segment.rank, target.nbytes // segment.size
    address_of = find_mpi().Get_address  # takes a seventh of the time of NumPy's own way
    own, everywhere = segment.next_block(_show_address, np.dtype(np.int64), (1,))
    own[0] = address_of(source)
    segment.barrier()
    start, goal, addresses = rank * nbytes, address_of(target), everywhere.tolist()
    pieces = iter([
        (origin, addresses[origin] + start + away, goal + origin * nbytes + away, min(PIECE_BYTES, nbytes - away))
        for origin in segment.others for away in range(0, nbytes, PIECE_BYTES)
    ])  # fmt: skip
    helped = segment.has_idle_cores and nbytes >= THREAD_BYTES
    if helped:  # both threads take from the same pieces, so that the slower one takes fewer
        help_ends = _helper.submit(segment.neighbours.read, pieces)
    mine = slice(start // target.itemsize, (start + nbytes) // target.itemsize)
    target[mine] = source[mine]
    segment.neighbours.read(pieces)
    if helped:
        help_ends.result()
    segment.barrier()


def _show_address(segment, odd: bool, dtype, shape):
    every = segment.slots(odd, dtype, shape)
    return every[segment.rank], every[:, 0]

