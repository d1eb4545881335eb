"""All-to-all through memory that the ranks of a node share (segment.py), without any messages.

Every rank publishes what it sends and, after a barrier, takes its own block from all slots. Long blocks are read
directly from the other process's memory if the system allows it (single_copy.py), with a second thread if cores are
idle, because one core cannot use all of the memory's bandwidth.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from labs_helpers.collectives.shared_memory.segment import segment_of
from labs_helpers.launch.flavour import find_mpi

AT_ONCE_BYTES = 64 * 2**10  # up to here one copy of all blocks costs less than a copy for each of them
SINGLE_COPY_BYTES = 128 * 2**10  # bytes of a block: from here on one copy by the kernel is faster than two of ours
PIECE_BYTES = 2**20  # bytes that a thread takes at a time

_helper = ThreadPoolExecutor(1, "alltoall")  # its thread starts on first use


def alltoall(comm, source, target) -> None:
    """Exchange blocks. source: (n,), block r of n/N elements is for rank r. target: (n,), block r comes from rank r."""
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
        incoming[rank] = outgoing[rank]
        for origin in segment.arrivals():
            incoming[origin] = mine[origin]


def _show(segment, odd: bool, dtype, shape):
    """Return the own slot (N, m), and in all slots the blocks for this rank (N, m)."""
    every = segment.slots(odd, dtype, shape)
    return every[segment.rank], every[:, segment.rank]


def _read_blocks(segment, source, target) -> None:
    """Publish where this rank's data is, read from the ranks that have arrived, and wait until all have read their
    blocks."""
    rank, nbytes, read = segment.rank, target.nbytes // segment.size, segment.neighbours.read
    address_of = find_mpi().Get_address  # takes a seventh of the time of NumPy's own method
    own, addresses = segment.next_block(_show_address, np.dtype(np.int64), (1,))
    own[0], goal = address_of(source), address_of(target)
    mine = slice(rank * target.size // segment.size, (rank + 1) * target.size // segment.size)
    target[mine] = source[mine]

    def pieces_from(origin):
        there, here = int(addresses[origin]) + rank * nbytes, goal + origin * nbytes
        return [(origin, there + at, here + at, min(PIECE_BYTES, nbytes - at)) for at in range(0, nbytes, PIECE_BYTES)]

    pieces = (piece for origin in segment.arrivals() for piece in pieces_from(origin))
    if segment.has_idle_cores:
        pieces = iter(list(pieces))  # both threads take the next free piece, so that the slower one takes fewer
        help_ends = _helper.submit(read, pieces)
        try:
            read(pieces)
        finally:
            help_ends.result()  # even after an error, the thread must not write into a target that is gone
    else:
        read(pieces)
    segment.barrier()


def _show_address(segment, odd: bool, dtype, shape):
    every = segment.slots(odd, dtype, shape)
    return every[segment.rank], every[:, 0]
