"""Memory that all ranks of a node share, and a barrier of flags in it.

Rank 0 allocates one window (MPI.Win.Allocate_shared) for all:

    flags     one cache line a rank: how many barriers it has reached
    results   2 × BLOCK, for what the ranks compute together
    slots     2 × BLOCK a rank, for what it shows the others

Why two of each: with e the number of the coming barrier, a rank writes only to slot and result e % 2. What is read
after barrier e is read before the reader reaches barrier e + 1, and not written again before barrier e + 1 has
passed. So one barrier between writing and reading is enough; none is needed before the next writing.
"""

import itertools
import os
from collections.abc import Sequence

import numpy as np

from labs_helpers.collectives.nodes import kept_with, nodes_of
from labs_helpers.collectives.operations import find_mpi
from labs_helpers.collectives.single_copy import Neighbours

BLOCK_BYTES = 512 * 2**10  # as much as stays in a core's L2 cache with what is computed from it
MOST_BYTES = 64 * 2**20  # of all slots together; containers often have little shared memory
LINE = 64  # bytes of a cache line: flags on one line would slow each other down
PAGE = 4096
POLLS = 200  # looks at a flag before the core is offered to others
YIELDS = 16  # offers before MPI may move its own messages


class Segment:
    """The shared memory of `comm`, all of whose ranks are on one node. Collective; kept and freed with comm."""

    def __init__(self, comm):
        MPI = find_mpi()
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self.block = min(BLOCK_BYTES, MOST_BYTES // (2 * self.size)) // PAGE * PAGE
        # A line more than whole pages, so that the same element of all slots is not in the same set of the cache.
        self._stride = self.block + LINE
        self._results = -(-self.size * LINE // PAGE) * PAGE
        self._slots = self._results + 2 * self._stride
        total = self._slots + 2 * self.size * self._stride
        self._window = MPI.Win.Allocate_shared(total if self.rank == 0 else 0, 1, comm=comm)
        self._window.Lock_all()  # makes `Sync` order this rank's memory accesses (MPI 4.1, §12.7)
        self.memory = self._window.Shared_query(0)[0]
        self._flags = memoryview(self.memory).cast("B")[: self.size * LINE].cast("q")
        self._own = self.rank * LINE // 8
        self._flags[self._own] = 0
        self._others = [(self.rank + away) % self.size * LINE // 8 for away in range(1, self.size)]
        self._reached = 0
        cores = set().union(*comm.allgather(_cores()))
        self._crowded = len(cores) < self.size
        self._views = {}
        self.neighbours = Neighbours(comm)
        self._window.Sync()
        comm.Barrier()

    def barrier(self) -> None:
        """Wait until everybody is here; what they wrote before can be read after."""
        flags, turn = self._flags, self._reached + 1
        self._reached = turn
        self._window.Sync()
        if self._crowded:  # ranks that take turns on a core: MPI's own barrier hands it on more quickly
            self.comm.Barrier()
        else:
            flags[self._own] = turn
            for other in self._others:
                if flags[other] < turn:
                    self._wait(other, turn)
        self._window.Sync()

    def _wait(self, other: int, turn: int) -> None:
        flags = self._flags
        for _ in range(POLLS):
            if flags[other] >= turn:
                return
        for offers in itertools.count(1):
            os.sched_yield()
            if flags[other] >= turn:
                return
            # The other may be held up by a message to this rank, which only a call of MPI lets arrive.
            if offers % YIELDS == 0:
                self.comm.Iprobe()

    def views(self, dtype, shape: Sequence[int]):
        """(own, every, result) of the coming barrier, for arrays of this dtype and shape, at most a block long.

        own: this rank's slot, `shape`. every: all slots, (ranks, *shape). result: `shape`.
        """
        pair = self._views.get((dtype, shape))
        if pair is None:
            if len(self._views) > 99:
                self._views.clear()
            pair = self._views[dtype, shape] = [self._make_views(dtype, shape, which) for which in (0, 1)]
        return pair[(self._reached + 1) & 1]

    def _make_views(self, dtype, shape, which: int):
        # Slot by slot: first everybody's slot 0, then everybody's slot 1.
        start = self._slots + which * self.size * self._stride
        inner = np.empty(shape, dtype).strides
        every = np.ndarray((self.size, *shape), dtype, self.memory, start, (self._stride, *inner))
        result = np.ndarray(shape, dtype, self.memory, self._results + which * self._stride)
        return every[self.rank], every, result

    def free(self) -> None:
        self._views.clear()
        self._flags.release()
        self._window.Unlock_all()
        self._window.Free()


def _cores() -> set[int]:
    """Those that this process may run on: all ranks' together are those of the node that the ranks share."""
    return os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))


def segment_of(comm) -> Segment:
    """comm's segment; collective at first. Raises ValueError if comm spans nodes, TypeError if it is not MPI's."""
    return kept_with(comm, "segment", _make)


def _make(comm) -> Segment:
    number = nodes_of(comm).number_of_nodes
    if number > 1:
        raise ValueError(f"algorithm 'shared_memory' needs all ranks of comm on one node, but they are on {number}")
    return Segment(comm)
