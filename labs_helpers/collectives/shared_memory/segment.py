"""Memory that all ranks of a node share, and flags in it to wait for each other.

Rank 0 allocates one window (MPI.Win.Allocate_shared) for all:

    flags     one cache line a rank: how often it has met the others
    results   2 × BLOCK, for what the ranks compute together
    slots     2 × BLOCK a rank, for what it shows the others

Why two of each: block number b of a rank's work lies in slot and result b % 2. In every block each rank hears from
all the others, directly or through others. So whoever begins block b + 2 knows that nobody reads block b any more,
and nobody has to wait before writing.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from labs_helpers.collectives.nodes import kept_with, nodes_of
from labs_helpers.collectives.operations import find_mpi
from labs_helpers.collectives.shared_memory.single_copy import Neighbours
from labs_helpers.launch.flavour import own_cores

BLOCK_BYTES = 2**20  # as much as stays in a core's L2 cache with what is computed from it
MOST_BYTES = 64 * 2**20  # of all slots together; containers often have little shared memory
LINE = 64  # bytes of a cache line: flags on one line would slow each other down
STEP = LINE // 8  # from flag to flag
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
        self._window.Lock_all()
        self._sync = self._window.Sync  # orders this rank's memory accesses (MPI 4.1, §12.7)
        self.memory = self._window.Shared_query(0)[0]
        self._flags = memoryview(self.memory).cast("B")[: self.size * LINE].cast("q")
        self._own = self.rank * STEP
        self._flags[self._own] = 0
        self.others = [(self.rank + away) % self.size for away in range(1, self.size)]  # nearest first
        self._met = 0
        self._block_is_odd = False
        self._made = {}
        cores = len(set().union(*comm.allgather(own_cores())))  # of the node that the ranks share
        self.crowded = cores < self.size
        self._polls = 0 if self.crowded else POLLS
        self.has_idle_cores = cores >= 2 * self.size
        self.neighbours = Neighbours(comm)
        self._sync()
        comm.Barrier()

    def barrier(self) -> None:
        """Wait until everybody is here; what they wrote before can be read after."""
        self.meet(self.others)

    def meet(self, others: Sequence[int]) -> None:
        """Wait until the ranks `others` are here. Every rank has to call this as often as all the others."""
        flags, turn = self._flags, self._arrive()
        for other in others:
            if flags[other * STEP] < turn:
                self._wait(other * STEP, turn)
        self._sync()

    def arrivals(self) -> Iterator[int]:
        """A barrier that gives each other rank as soon as it is here. Has to be gone through to the end."""
        flags, turn = self._flags, self._arrive()
        late, looks = self.others, 0
        while late:
            still_late = []
            for other in late:
                if flags[other * STEP] >= turn:
                    self._sync()
                    yield other
                else:
                    still_late.append(other)
            if len(still_late) == len(late):
                looks += 1
                if looks > self._polls:
                    self._give_way(looks)
            late = still_late

    def _arrive(self) -> int:
        self._met += 1
        self._sync()
        self._flags[self._own] = self._met
        return self._met

    def _wait(self, flag: int, turn: int) -> None:
        flags = self._flags
        for _ in range(self._polls):
            if flags[flag] >= turn:
                return
        for times in itertools.count(1):
            self._give_way(times)
            if flags[flag] >= turn:
                return

    def _give_way(self, times: int) -> None:
        os.sched_yield()
        # The other may be held up by a message to this rank, which only a call of MPI lets arrive.
        if times % YIELDS == 0:
            self.comm.Iprobe()

    def next_block(self, make: Callable, dtype, shape: tuple[int, ...]):
        """What `make(segment, odd, dtype, shape)` gives for the next block: views of its slots; made once and kept.

        odd: whether the block's number is. Every rank has to call it alike, and to hear from all others before the
        next call: by a barrier, or by meeting log₂ N partners at the distances 1, 2, 4 …
        """
        self._block_is_odd = odd = not self._block_is_odd
        key = make, dtype, shape
        pair = self._made.get(key)
        if pair is None:
            if len(self._made) > 99:
                self._made.clear()
            pair = self._made[key] = [make(self, which, dtype, shape) for which in (False, True)]
        return pair[odd]

    def parts(self, array: np.ndarray) -> Iterator[slice]:
        """The parts of a vector that are at most a block."""
        longest = self.block // array.itemsize
        return (slice(start, start + longest) for start in range(0, array.size, longest))

    def slots(self, odd: bool, dtype, shape: tuple[int, ...]) -> np.ndarray:
        """All slots, (ranks, *shape); at most a block each."""
        # Slot by slot: first everybody's even ones, then everybody's odd ones.
        start = self._slots + odd * self.size * self._stride
        inner = np.empty(shape, dtype).strides
        return np.ndarray((self.size, *shape), dtype, self.memory, start, (self._stride, *inner))

    def result(self, odd: bool, dtype, shape: tuple[int, ...]) -> np.ndarray:
        """The result, `shape`; at most a block."""
        return np.ndarray(shape, dtype, self.memory, self._results + odd * self._stride)

    def free(self) -> None:
        self._made.clear()
        self._flags.release()
        self._window.Unlock_all()
        self._window.Free()


def segment_of(comm) -> Segment:
    """comm's segment; collective at first. Raises ValueError if comm spans nodes, TypeError if it is not MPI's."""
    return kept_with(comm, "segment", _make)


def _make(comm) -> Segment:
    number = nodes_of(comm).number_of_nodes
    if number > 1:
        raise ValueError(f"algorithm 'shared_memory' needs all ranks of comm on one node, but they are on {number}")
    return Segment(comm)
