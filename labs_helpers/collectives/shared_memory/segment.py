"""Memory that all ranks of a node share. They wait for each other on their board (board.py).

Rank 0 allocates one window (MPI.Win.Allocate_shared) for all:

    results   2 × BLOCK, for what the ranks compute together
    slots     2 × BLOCK per rank, for what it publishes

There are two of each, and block number b of a rank's work uses slot and result b % 2. In every block each rank hears
from all the others, directly or through others. So a rank that begins block b + 2 knows that nobody reads block b any
more, and nobody has to wait before writing.
"""

from collections.abc import Callable, Iterator

import numpy as np

from labs_helpers.collectives.nodes import kept_with, nodes_of
from labs_helpers.collectives.shared_memory.board import LINE, Differs, board_of
from labs_helpers.collectives.shared_memory.single_copy import Neighbours
from labs_helpers.launch.flavour import find_mpi

BLOCK_BYTES = 2**20  # what fits in a core's L2 cache, together with the result
MOST_BYTES = 64 * 2**20  # for all slots together; containers often have little shared memory
PAGE = 4096


class Segment:
    """The shared memory of `comm`, all of whose ranks are on one node. Creation is collective; it is kept and freed
    with comm."""

    def __init__(self, comm):
        self.board = board = board_of(comm)
        self.rank, self.size, self.others = board.rank, board.size, board.others
        self.crowded, self.has_idle_cores = board.crowded, board.has_idle_cores
        self.meet, self.arrivals = board.meet, board.arrivals
        self.block = min(BLOCK_BYTES, MOST_BYTES // (2 * self.size)) // PAGE * PAGE
        # One line more than whole pages, so that the same element of all slots does not map to the same cache set.
        self._stride = self.block + LINE
        self._slots = 2 * self._stride
        total = self._slots + 2 * self.size * self._stride
        self._window = find_mpi().Win.Allocate_shared(total if self.rank == 0 else 0, 1, comm=comm)
        self._window.Lock_all()  # the board's `Sync` orders accesses to all of a rank's memory
        self.memory = self._window.Shared_query(0)[0]
        self._made = {}
        self.neighbours = Neighbours(comm)
        comm.Barrier()

    def barrier(self, number: int | None = None) -> None:
        """Wait until all ranks are here; afterwards this rank can read what they wrote before.

        number: of the call that this rank is in. Raises Differs, on all ranks, if another rank is in another call.
        """
        if number is None:
            self.meet(self.others)
        elif not self.board.agree(number):
            raise Differs

    def next_block(self, make: Callable, dtype, shape: tuple[int, ...]):
        """Return the result of `make(segment, odd, dtype, shape)` for the next block: views of its slots, created once
        and kept.

        odd: True if the block's number is odd. Every rank has to make the same calls, and to hear from all others
        before the next call: by a barrier, or by waiting for log₂N partners at the distances 1, 2, 4 …
        """
        self.board.odd = odd = not self.board.odd
        key = make, dtype, shape
        pair = self._made.get(key)
        if pair is None:
            if len(self._made) > 99:
                self._made.clear()
            pair = self._made[key] = [make(self, which, dtype, shape) for which in (False, True)]
        return pair[odd]

    def parts(self, array: np.ndarray) -> Iterator[slice]:
        """Return the parts of a vector, each at most a block."""
        longest = self.block // array.itemsize
        return (slice(start, start + longest) for start in range(0, array.size, longest))

    def slots(self, odd: bool, dtype, shape: tuple[int, ...]) -> np.ndarray:
        """Return all slots as an array (ranks, *shape); `shape` must fit in one block."""
        # Slot by slot: first everybody's even ones, then everybody's odd ones.
        start = self._slots + odd * self.size * self._stride
        inner = np.empty(shape, dtype).strides
        return np.ndarray((self.size, *shape), dtype, self.memory, start, (self._stride, *inner))

    def result(self, odd: bool, dtype, shape: tuple[int, ...]) -> np.ndarray:
        """Return the result as an array of shape `shape`, which must fit in one block."""
        return np.ndarray(shape, dtype, self.memory, odd * self._stride)

    def free(self) -> None:
        self._made.clear()
        self._window.Unlock_all()
        self._window.Free()


def segment_of(comm) -> Segment:
    """Return comm's segment; the first call is collective. ValueError if comm spans nodes, TypeError if it is not
    MPI's."""
    return kept_with(comm, "segment", _make)


def _make(comm) -> Segment:
    number = nodes_of(comm).number_of_nodes
    if number > 1:
        raise ValueError(f"algorithm 'shared_memory' needs all ranks of comm on one node, but they are on {number}")
    return Segment(comm)
