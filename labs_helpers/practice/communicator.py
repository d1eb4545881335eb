"""The communicator of a practice rank: the point-to-point methods of mpi4py's `MPI.Comm`, under the same names."""

from __future__ import annotations

import sys

import numpy as np

from labs_helpers.practice.errors import BufferInUse
from labs_helpers.practice.mailbox import ANY, RECV, SEND, Operation
from labs_helpers.practice.message_buffer import elements
from labs_helpers.practice.request import PracticeRequest
from labs_helpers.practice.scheduler import Scheduler

KNOWN = (
    "Get_rank",
    "Get_size",
    "rank",
    "size",
    "Send",
    "Ssend",
    "Recv",
    "Sendrecv",
    "Sendrecv_replace",
    "Isend",
    "Issend",
    "Irecv",
    "Barrier",
)
_OPEN_MPI = {"ANY_SOURCE": -1, "ANY_TAG": -1, "PROC_NULL": -2, "UNDEFINED": -32766}


class PracticeComm:
    """One rank's communicator. Sends are synchronous, except those of at most `eager_limit` bytes."""

    def __init__(self, scheduler: Scheduler, rank: int):
        self._scheduler, self.rank, self.size = scheduler, rank, scheduler.size

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Send(self, buf, dest: int, tag: int = 0) -> None:
        self._wait(self._send(buf, dest, tag))

    def Ssend(self, buf, dest: int, tag: int = 0) -> None:
        self._wait(self._send(buf, dest, tag, synchronous=True))

    def Recv(self, buf, source: int | None = None, tag: int | None = None, status=None) -> None:
        self._wait(self._receive(buf, source, tag), status)

    def Sendrecv(
        self,
        sendbuf,
        dest: int,
        sendtag: int = 0,
        recvbuf=None,
        source: int | None = None,
        recvtag: int | None = None,
        status=None,
    ) -> None:
        sent, received = elements(sendbuf), elements(recvbuf, writeable=True)
        if sent.size and received.size and np.may_share_memory(sent, received):
            raise ValueError("Sendrecv: sendbuf and recvbuf overlap; receive into a buffer of its own")
        self._wait(self._send(sendbuf, dest, sendtag) + self._receive(recvbuf, source, recvtag), status)

    def Sendrecv_replace(
        self, buf, dest: int, sendtag: int = 0, source: int | None = None, recvtag: int | None = None, status=None
    ) -> None:
        sent = elements(buf, writeable=True).copy()  # a copy leaves, because the buffer is written meanwhile
        self._wait(self._send(sent, dest, sendtag) + self._receive(buf, source, recvtag), status)

    def Isend(self, buf, dest: int, tag: int = 0) -> PracticeRequest:
        return PracticeRequest(self, self._send(buf, dest, tag))

    def Issend(self, buf, dest: int, tag: int = 0) -> PracticeRequest:
        return PracticeRequest(self, self._send(buf, dest, tag, synchronous=True))

    def Irecv(self, buf, source: int | None = None, tag: int | None = None) -> PracticeRequest:
        return PracticeRequest(self, self._receive(buf, source, tag))

    def Barrier(self) -> None:
        self._scheduler.barrier(self.rank)

    def __getattr__(self, name: str):
        arrays = f"; they send NumPy arrays: {name.capitalize()}" if name.capitalize() in KNOWN else ""
        raise AttributeError(f"practice ranks know {', '.join(KNOWN)}, not {name!r}{arrays}")

    def __repr__(self) -> str:
        return f"<practice rank {self.rank} of {self.size}>"

    def _send(self, buf, dest, tag, synchronous: bool = False) -> list[Operation]:
        values = elements(buf)
        if self._means(dest, "PROC_NULL"):
            return []
        self._check_rank("dest", dest)
        if not isinstance(tag, int | np.integer) or tag < 0:
            raise ValueError(f"a message's tag is a whole number from 0, not {tag!r}")
        return self._post(Operation(SEND, self.rank, int(dest), int(tag), values, data=values.tobytes()), synchronous)

    def _receive(self, buf, source, tag) -> list[Operation]:
        values = elements(buf, writeable=True)
        if source is not None and self._means(source, "PROC_NULL"):
            return []
        source = ANY if source is None or self._means(source, "ANY_SOURCE") else source
        tag = ANY if tag is None or tag == constant("ANY_TAG") else tag
        if source is not ANY:
            self._check_rank("source", source)
        for other in self._scheduler.requests:
            if other.kind == RECV and other.rank == self.rank and not other.finished and _overlap(other.buffer, values):
                raise BufferInUse(
                    f"a second message is received into the same memory: {other} is not waited for yet, and which of "
                    "the two stays there is left to chance; each needs a buffer of its own, or Wait first"
                )
        return self._post(Operation(RECV, self.rank, source, tag, values))

    def _post(self, operation: Operation, synchronous: bool = False) -> list[Operation]:
        operation.posted = self._scheduler.clock[self.rank]
        self._scheduler.mailbox.post(operation, synchronous)
        return [operation]

    def _wait(self, operations: list[Operation], status=None) -> None:
        if operations:
            self._scheduler.wait(self.rank, operations)
        if status is not None:
            _fill(status, next((one.met for one in operations if one.kind == RECV), None))

    def _means(self, rank, name: str) -> bool:
        """Return True if a rank is MPI's constant of this name, and not a number that happens to be equal."""
        names = self._scheduler.constants
        return rank == constant(name) and (names is None or name in names)

    def _check_rank(self, name: str, value) -> None:
        if not isinstance(value, int | np.integer) or not 0 <= value < self.size:
            raise ValueError(f"{name} is {value!r}, but the ranks are 0 to {self.size - 1}")


def _overlap(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(a.size and b.size and np.may_share_memory(a, b))


def constant(name: str) -> int:
    """Return mpi4py's value, which differs between MPIs, if the program took it from there; practice ranks alone
    load no MPI."""
    mpi = sys.modules.get("mpi4py.MPI")
    return getattr(mpi, name) if mpi is not None else _OPEN_MPI[name]


def _fill(status, send: Operation | None) -> None:
    """Set the source, tag and length of a received message in an `MPI.Status`."""
    from mpi4py import MPI

    status.source, status.tag = (send.rank, send.tag) if send is not None else (MPI.PROC_NULL, MPI.ANY_TAG)
    status.Set_elements(MPI.BYTE, len(send.data) if send is not None else 0)
