"""The communicator of a practice rank: the point-to-point part of mpi4py's `MPI.Comm`, by the same names."""

from __future__ import annotations

import sys

import numpy as np

from labs_helpers.collectives.practice.baton import Baton
from labs_helpers.collectives.practice.mailbox import ANY, RECV, SEND, Operation
from labs_helpers.collectives.practice.message_buffer import elements

KNOWN = (
    "Get_rank",
    "Get_size",
    "rank",
    "size",
    "Send",
    "Ssend",
    "Recv",
    "Sendrecv",
    "Isend",
    "Issend",
    "Irecv",
    "Barrier",
)
_OPEN_MPI = {"ANY_SOURCE": -1, "ANY_TAG": -1, "PROC_NULL": -2, "UNDEFINED": -32766}


class PracticeRequest:
    """What Isend and Irecv return. A receive's data is in its buffer after Wait, never before."""

    def __init__(self, comm: PracticeComm, operations: list[Operation]):
        self._comm, self._operations = comm, operations
        comm._baton.requests += operations

    def Wait(self, status=None) -> bool:
        """Waits until the message has been sent, or has been received into its buffer."""
        self._comm._wait(self._operations, status)
        return True

    @classmethod
    def Waitall(cls, requests, statuses=None) -> bool:
        """Waits for all of them, as `MPI.Request.Waitall`: `requests[0].Waitall(requests)` does on both."""
        requests = list(requests)
        if requests:
            requests[0]._comm._wait([one for request in requests for one in request._operations])
        return True

    def __getattr__(self, name: str):
        raise AttributeError(f"requests of practice ranks know Wait and Waitall, not {name!r}")


class PracticeComm:
    """One rank's communicator. Sends are synchronous, except those of at most `eager_limit` bytes."""

    def __init__(self, baton: Baton, rank: int):
        self._baton, self.rank, self.size = baton, rank, baton.size

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

    def Isend(self, buf, dest: int, tag: int = 0) -> PracticeRequest:
        return PracticeRequest(self, self._send(buf, dest, tag))

    def Issend(self, buf, dest: int, tag: int = 0) -> PracticeRequest:
        return PracticeRequest(self, self._send(buf, dest, tag, synchronous=True))

    def Irecv(self, buf, source: int | None = None, tag: int | None = None) -> PracticeRequest:
        return PracticeRequest(self, self._receive(buf, source, tag))

    def Barrier(self) -> None:
        self._baton.barrier(self.rank)

    def __getattr__(self, name: str):
        arrays = f"; they send NumPy arrays: {name.capitalize()}" if name.capitalize() in KNOWN else ""
        raise AttributeError(f"practice ranks know {', '.join(KNOWN)}, not {name!r}{arrays}")

    def __repr__(self) -> str:
        return f"<practice rank {self.rank} of {self.size}>"

    def _send(self, buf, dest, tag, synchronous: bool = False) -> list[Operation]:
        values = elements(buf)
        if dest == constant("PROC_NULL"):
            return []
        self._check_rank("dest", dest)
        if not isinstance(tag, int | np.integer) or tag < 0:
            raise ValueError(f"a message's tag is a whole number from 0, not {tag!r}")
        return self._post(Operation(SEND, self.rank, int(dest), int(tag), values, data=values.tobytes()), synchronous)

    def _receive(self, buf, source, tag) -> list[Operation]:
        values = elements(buf, writeable=True)
        if source is not None and source == constant("PROC_NULL"):
            return []
        source = ANY if source is None or source == constant("ANY_SOURCE") else source
        tag = ANY if tag is None or tag == constant("ANY_TAG") else tag
        if source is not ANY:
            self._check_rank("source", source)
        return self._post(Operation(RECV, self.rank, source, tag, values))

    def _post(self, operation: Operation, synchronous: bool = False) -> list[Operation]:
        operation.posted = self._baton.clock[self.rank]
        self._baton.mailbox.post(operation, synchronous)
        return [operation]

    def _wait(self, operations: list[Operation], status=None) -> None:
        if operations:
            self._baton.wait(self.rank, operations)
        if status is not None:
            _fill(status, next((one.met for one in operations if one.kind == RECV), None))

    def _check_rank(self, name: str, value) -> None:
        if not isinstance(value, int | np.integer) or not 0 <= value < self.size:
            raise ValueError(f"{name} is {value!r}, but the ranks are 0 to {self.size - 1}")


def constant(name: str) -> int:
    """mpi4py's value, which differs between MPIs, when a program has it from there; practice alone loads no MPI."""
    mpi = sys.modules.get("mpi4py.MPI")
    return getattr(mpi, name) if mpi is not None else _OPEN_MPI[name]


def _fill(status, send: Operation | None) -> None:
    """Tells an `MPI.Status` the source, the tag and the length of what was received."""
    from mpi4py import MPI

    status.source, status.tag = (send.rank, send.tag) if send is not None else (MPI.PROC_NULL, MPI.ANY_TAG)
    status.Set_elements(MPI.BYTE, len(send.data) if send is not None else 0)
