"""A board in shared memory with one line per rank of a node, on which ranks wait for each other and compare their
calls.

A rank writes its own line and reads the others' (MPI.Win.Allocate_shared):

    met         how often it has waited for others; it only grows
    even, odd   the number of its current call, for `agree`, and a bit that changes from one use to the next

There are two places for the number, because a rank may be in its next `agree` while another still reads the number of
this one. It cannot be in the one after that, which needs every rank in the next. The place's previous use was two calls
ago, so the bit distinguishes the old number from the new one.
"""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence

from labs_helpers.collectives.nodes import find_kept, kept_with, nodes_of
from labs_helpers.launch.flavour import find_mpi, own_cores

LINE = 64  # bytes of a cache line; flags of several ranks on one line would slow each other down
STEP = LINE // 8  # from a rank's line to the next one's
POLLS = 20  # polls of a flag before the core is offered to others, which takes 0.3 µs even if nobody takes it
YIELDS = 16  # offers before MPI may move its own messages

CALLS: dict[int, dict] = {}  # a communicator's handle → the calls that `remembered` keeps with its board


class Differs(Exception):
    """Not all ranks are in the same call; all of them raise this before anything is reduced."""


class Board:
    """The lines of `comm`'s ranks, all on one node. Creation is collective; the board is kept and freed with comm.

    odd: which of its two places a rank's next block uses (segment.py).
    """

    def __init__(self, comm):
        MPI = find_mpi()
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()
        self._window = MPI.Win.Allocate_shared(self.size * LINE if self.rank == 0 else 0, 1, comm=comm)
        self._window.Lock_all()
        self._sync = self._window.Sync  # orders this rank's memory accesses (MPI 4.1, §12.7)
        self._flags = memoryview(self._window.Shared_query(0)[0]).cast("B")[: self.size * LINE].cast("q")
        self._own = self.rank * STEP
        for place in range(3):
            self._flags[self._own + place] = 0
        self.others = [(self.rank + away) % self.size for away in range(1, self.size)]  # nearest first
        self._met, self._agreed = 0, 1  # the first use has a bit of 1, since nobody has written the zeros
        self._said_by_others = [[other * STEP + place for other in self.others] for place in (1, 2)]
        self.odd = False
        cores = len(set().union(*comm.allgather(own_cores())))  # the number of cores of the node
        self.crowded = cores < self.size
        self.has_idle_cores = cores >= 2 * self.size
        self._polls = 0 if self.crowded else POLLS
        self._handle = comm.handle
        CALLS[self._handle] = {}
        self._sync()
        comm.Barrier()

    def agree(self, number: int) -> bool:
        """Wait at a barrier at which every rank publishes its call's number. False, on all ranks, if the numbers differ
        or are 0; then the barrier may end before all ranks are here, and every rank must wait for all others before it
        writes again.

        number: from 0 up, below 2⁶².
        """
        self._agreed = uses = self._agreed + 1
        word, place = number << 1 | uses >> 1 & 1, uses & 1
        flags = self._flags
        self._sync()
        flags[self._own + 1 + place] = word
        for flag in self._said_by_others[place]:
            if flags[flag] != word:
                if (flags[flag] ^ word) & 1:  # written two uses ago
                    self._wait(lambda flag=flag: not (flags[flag] ^ word) & 1)
                if flags[flag] != word:
                    self.odd = False  # on all ranks, since some may not have begun a block
                    return False
        self._sync()
        return number > 0

    def meet(self, others: Sequence[int]) -> None:
        """Wait until the ranks `others` are here. Every rank has to call this as often as all the others."""
        flags, turn = self._flags, self._arrive()
        for other in others:
            flag = other * STEP
            if flags[flag] < turn:
                self._wait(lambda flag=flag: flags[flag] >= turn)
        self._sync()

    def arrivals(self) -> Iterator[int]:
        """Yield each other rank as soon as it reaches this barrier. The caller has to exhaust the iterator."""
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

    def _wait(self, is_here: Callable[[], bool]) -> None:
        for _ in range(self._polls):
            if is_here():
                return
        for times in itertools.count(1):
            self._give_way(times)
            if is_here():
                return

    def _give_way(self, times: int) -> None:
        os.sched_yield()
        # The other rank may be waiting for a message to this rank, which arrives only during a call of MPI.
        if times % YIELDS == 0:
            self.comm.Iprobe()

    def free(self) -> None:
        CALLS.pop(self._handle)
        self._flags.release()
        self._window.Unlock_all()
        self._window.Free()


def board_of(comm) -> Board | None:
    """Return comm's board; None if its ranks are on several nodes. The first call is collective. TypeError if comm
    is not MPI's."""
    board = find_kept(comm, "board")
    if board is None and nodes_of(comm).number_of_nodes == 1:
        board = kept_with(comm, "board", Board)
    return board
