"""A communicator that counts what its rank actually sends, to compare with an algorithm's formula."""

from __future__ import annotations

from labs_helpers.practice.communicator import constant
from labs_helpers.practice.message_buffer import elements
from labs_helpers.practice.place import OWN_FILES

OWN_FILES.add(__file__)  # an error's message names the line that called the communicator, not the line here
_COUNTED = ("Send", "Ssend", "Isend", "Issend", "Sendrecv")
_PASSED_ON = ("Get_rank", "Get_size", "rank", "size", "Recv", "Irecv", "Barrier")


class CountingComm:
    """Wraps a communicator, mpi4py's or a practice rank's, and has its point-to-point methods.

    `bytes_sent` and `messages_sent` count what this rank has sent since the object was created, or since `reset()`.
    Messages to MPI.PROC_NULL do not count; messages to the rank itself do. MPI's own collectives, whose messages are
    invisible, raise AttributeError.
    """

    def __init__(self, comm):
        self.comm = comm
        self.reset()

    def reset(self) -> None:
        self.bytes_sent = self.messages_sent = 0

    def Send(self, buf, dest, tag=0):
        self._count(buf, dest)
        return self.comm.Send(buf, dest, tag)

    def Ssend(self, buf, dest, tag=0):
        self._count(buf, dest)
        return self.comm.Ssend(buf, dest, tag)

    def Isend(self, buf, dest, tag=0):
        self._count(buf, dest)
        return self.comm.Isend(buf, dest, tag)

    def Issend(self, buf, dest, tag=0):
        self._count(buf, dest)
        return self.comm.Issend(buf, dest, tag)

    def Sendrecv(self, sendbuf, dest, *receive, **named):
        self._count(sendbuf, dest)
        return self.comm.Sendrecv(sendbuf, dest, *receive, **named)

    def __getattr__(self, name: str):
        if name in _PASSED_ON:
            return getattr(self.comm, name)
        raise AttributeError(
            f"a counting communicator knows {', '.join(_COUNTED + _PASSED_ON)}, not {name!r}, whose "
            "messages it could not count"
        )

    def _count(self, buf, dest) -> None:
        nbytes = elements(buf).nbytes
        if dest != constant("PROC_NULL"):
            self.bytes_sent += nbytes
            self.messages_sent += 1
