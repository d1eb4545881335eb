"""A rank in a jail of its own: its communicator's calls go as lines of text to the broker outside, which makes them.

Reads {"name": …, "imports": […], "before": […], "source": …} from stdin, and then, as often as it comes,
{"rank": 0, "size": 4, "args": […]}; it calls the function with a communicator and these arguments. Each line to stdout
is a call of the communicator's, {"call": "Send", …}, whose answer is the next line of stdin, or the end:
{"args": […]}, the arguments as they were left, or {"raised": "ValueError"}.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from labs_helpers.course.own_memory import names_in
from labs_helpers.grading.judged import defined
from labs_helpers.grading.ranks.before import with_those_before
from labs_helpers.practice.message_buffer import elements

DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")


def packed(array: np.ndarray[Any, Any]) -> dict[str, Any]:
    """An array as JSON can hold it."""
    content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": str(array.dtype), "shape": list(array.shape), "bytes": content}


def unpacked(text: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The array that `packed` wrote; ValueError, KeyError or TypeError of anything else."""
    if text["dtype"] not in DTYPES:
        raise ValueError(f"an array of {text['dtype']!r}")
    content = base64.b64decode(text["bytes"], validate=True)
    return np.frombuffer(content, text["dtype"]).reshape(text["shape"]).copy()


class Pipe:
    """Lines to and from the broker."""

    def __init__(self) -> None:
        self.reads, self.writes = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nowhere, descriptor)  # what an answer prints goes nowhere

    def tell(self, message: dict[str, Any]) -> None:
        self.writes.write(f"{json.dumps(message)}\n")
        self.writes.flush()

    def read(self) -> Any:
        return json.loads(self.reads.readline() or "null")


class PipeComm:
    """The methods of practice ranks' communicators."""

    def __init__(self, pipe: Pipe, rank: int, size: int, names: set[str]) -> None:
        self._pipe, self.rank, self.size, self._names = pipe, rank, size, names

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Barrier(self) -> None:
        self._ask("Barrier")

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        self.Isend(buf, dest, tag).Wait()

    def Recv(self, buf: Any, source: Any = None, tag: Any = None, status: Any = None) -> None:
        self.Irecv(buf, source, tag).Wait()

    def Sendrecv(
        self, sendbuf: Any, dest: int, sendtag: int = 0, recvbuf: Any = None, source: Any = None, recvtag: Any = None,
        status: Any = None,
    ) -> None:  # fmt: skip
        sent, received = elements(sendbuf), elements(recvbuf, writeable=True)
        if sent.size and received.size and np.may_share_memory(sent, received):
            raise ValueError("Sendrecv: sendbuf and recvbuf overlap")
        PipeRequest.Waitall([self.Isend(sendbuf, dest, sendtag), self.Irecv(recvbuf, source, recvtag)])

    def Sendrecv_replace(
        self, buf: Any, dest: int, sendtag: int = 0, source: Any = None, recvtag: Any = None, status: Any = None
    ) -> None:
        sent = elements(buf, writeable=True).copy()
        PipeRequest.Waitall([self.Isend(sent, dest, sendtag), self.Irecv(buf, source, recvtag)])

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> PipeRequest:
        values = elements(buf)
        if self._means(dest, "PROC_NULL"):
            return PipeRequest(self, None)
        return PipeRequest(self, self._ask("Isend", buf=packed(values), dest=int(dest), tag=int(tag)))

    def Irecv(self, buf: Any, source: Any = None, tag: Any = None) -> PipeRequest:
        values = elements(buf, writeable=True)
        if source is not None and self._means(source, "PROC_NULL"):
            return PipeRequest(self, None)
        source = None if source is None or self._means(source, "ANY_SOURCE") else int(source)
        tag = None if tag is None or self._means(tag, "ANY_TAG") else int(tag)
        return PipeRequest(self, self._ask("Irecv", buf=packed(values), source=source, tag=tag), values)

    Ssend, Issend = Send, Isend

    def _means(self, value: Any, name: str) -> bool:
        """Whether it is MPI's constant of this name, and not a number that happens to be the same."""
        return name in self._names and value == getattr(sys.modules["mpi4py.MPI"], name)

    def _ask(self, call: str, **more: Any) -> Any:
        self._pipe.tell({"call": call, **more})
        return self._pipe.read()


class PipeRequest:
    """number: the broker's, None where nothing is under way. buffer: where what is received goes."""

    def __init__(self, comm: PipeComm, number: int | None, buffer: np.ndarray[Any, Any] | None = None) -> None:
        self._comm, self._number, self._buffer = comm, number, buffer

    def Wait(self, status: Any = None) -> bool:
        return self.Waitall([self])

    def Test(self, status: Any = None) -> bool:
        done = self._number is None or self._comm._ask("Test", request=self._number)
        return bool(done) and self.Wait()

    @classmethod
    def Waitall(cls, requests: Any, statuses: Any = None) -> bool:
        going = [one for one in requests if one._number is not None]
        for one, content in zip(going, _waited(going), strict=True):
            if one._buffer is not None:
                one._buffer[...] = unpacked(content)
            one._number = None
        return True

    wait, test, waitall = Wait, Test, Waitall


def _waited(going: list[PipeRequest]) -> list[Any]:
    return list(going[0]._comm._ask("Waitall", requests=[one._number for one in going])) if going else []


def main() -> NoReturn:
    if Path("/proc/1/comm").read_text().strip() != "bwrap":
        sys.exit("this runs in a jail alone: python -m labs_helpers.grading makes one")
    pipe = Pipe()
    function, names = _function(pipe.read())
    pipe.tell({"ready": True})
    while (given := pipe.read()) is not None:
        try:
            args = [getattr(np, one["op"]) if "op" in one else unpacked(one) for one in given["args"]]
            function(PipeComm(pipe, given["rank"], given["size"], names), *args)
            left = [packed(one) if isinstance(one, np.ndarray) else {} for one in args]
            pipe.tell({"args": left})
        except Exception as error:
            pipe.tell({"raised": type(error).__name__})
    os._exit(0)


def _function(job: dict[str, Any]) -> tuple[Any, set[str]]:
    """The answer, and all that it looks up; what is wrong with it is told when it is called."""
    try:
        function = with_those_before(defined(job, {}))
        names = names_in(function)
        if {"MPI", "Request"} & names:
            import mpi4py

            mpi4py.rc(initialize=False, finalize=False)
            from mpi4py import MPI

            setattr(MPI, "Request", PipeRequest)  # noqa: B010
        return function, names
    except Exception as error:
        return _Failed(error), set()


class _Failed:
    """In the place of an answer that cannot be defined."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, *_: Any) -> NoReturn:
        raise self.error
