"""The course's own collectives with mpi4py's method names; every message is counted."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from labs_helpers.collectives.counting import CountingComm
from labs_helpers.collectives.interface import MPI_ONLY, allgather, allreduce, broadcast, reduce_scatter

Array = np.ndarray[Any, Any]


class OwnCollectives:
    """Wraps an MPI communicator: `Allreduce`, `Iallreduce`, `Allgather`, `Reduce_scatter_block` and `Bcast` with
    mpi4py's signatures; `Isend`, `Irecv`, `Split` and `Free` are MPI's.

    algorithm: of all-reduce (see `collectives.ALGORITHMS`). The others use the ring, and Bcast a binomial tree. All
    consist of point-to-point messages, except the algorithms of MPI_ONLY (shared memory, two levels), whose messages
    are not counted.

    Every rank of comm creates it. `Iallreduce` runs in its own thread on its own communicator, so that it meets no
    other message. It needs an MPI with MPI_THREAD_MULTIPLE; without one, it completes before it returns.
    """

    def __init__(self, comm: Any, algorithm: str = "ring") -> None:
        self.algorithm = algorithm
        self._main, self._background = CountingComm(comm), CountingComm(comm.Dup())
        counted = algorithm not in MPI_ONLY
        self._reducing = (self._main, self._background) if counted else (comm, self._background.comm)
        self._thread = ThreadPoolExecutor(1) if _threads_may_call() else None

    @property
    def bytes_sent(self) -> int:
        """Bytes that this rank has sent since it created this object."""
        return self._main.bytes_sent + self._background.bytes_sent

    @property
    def messages_sent(self) -> int:
        """Messages that this rank has sent since it created this object."""
        return self._main.messages_sent + self._background.messages_sent

    def Get_rank(self) -> int:
        return self._main.Get_rank()

    def Get_size(self) -> int:
        return self._main.Get_size()

    def Allreduce(self, send: Any, recv: Array, op: Any = None) -> None:
        allreduce(self._reducing[0], send, recv, op, self.algorithm, validate=False)

    def Iallreduce(self, send: Any, recv: Array, op: Any = None) -> Started:
        if self._thread is None:
            allreduce(self._reducing[1], send, recv, op, self.algorithm, validate=False)
            return Started(None)
        return Started(self._thread.submit(allreduce, self._reducing[1], send, recv, op, self.algorithm, False))

    def Allgather(self, send: Array, recv: Array) -> None:
        allgather(self._main, send, recv, validate=False)

    def Reduce_scatter_block(self, send: Array, recv: Array, op: Any = None) -> None:
        reduce_scatter(self._main, send, recv, op, validate=False)

    def Bcast(self, buffer: Array, root: int = 0) -> None:
        broadcast(self._main, buffer, root, validate=False)

    def Isend(self, buffer: Array, dest: int) -> Any:
        return self._main.Isend(buffer, dest)

    def Irecv(self, buffer: Array, source: int) -> Any:
        return self._main.Irecv(buffer, source, 0)  # a tag that the collectives' messages do not use

    def Split(self, color: int, key: int) -> OwnCollectives:
        return OwnCollectives(self._main.comm.Split(color=color, key=key), self.algorithm)

    def Free(self) -> None:
        self._background.comm.Free()
        self._main.comm.Free()


class Started:
    """A request: the work of a thread, or work that is already done."""

    def __init__(self, future: Future[None] | None) -> None:
        self.future = future

    def Test(self) -> bool:
        return self.future is None or self.future.done()

    def Wait(self) -> None:
        if self.future is not None:
            self.future.result()


def _threads_may_call() -> bool:
    from mpi4py import MPI

    return bool(MPI.Query_thread() == MPI.THREAD_MULTIPLE)
