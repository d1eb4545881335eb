"""A practice rank's communicator with groups: Split and MPI's collectives, under mpi4py's names."""

from __future__ import annotations

import numpy as np

from labs_helpers.practice.caller import Caller
from labs_helpers.practice.communicator import constant
from labs_helpers.practice.group_buffers import check_pair, flat, in_blocks, two
from labs_helpers.practice.group_request import GroupRequest
from labs_helpers.practice.mailbox import RECV, SEND, Operation
from labs_helpers.practice.message_buffer import elements
from labs_helpers.practice.reductions import is_in_place, operation_name, reduced

KNOWN = (
    "Get_rank, Get_size, rank, size, Split, Dup, Free, Barrier, Bcast, Gather, Scatter, Allgather, Reduce, Allreduce, "
    "Iallreduce, Reduce_scatter_block, Reduce_scatter, Alltoall, Isend, Irecv; for Python's objects bcast, gather, "
    "scatter, allgather, reduce, allreduce, alltoall"
)


class GroupComm(Caller):
    """One rank's communicator over `ranks` of the world, in which this rank has position `rank`."""

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    @property
    def ranks(self) -> tuple[int, ...]:
        """The communicator's ranks of the world, in its order, for observers. mpi4py's communicators have no such
        property."""
        return self._ranks

    def Split(self, color: int = 0, key: int = 0) -> GroupComm | None:
        """Split as MPI does: ranks with equal keys keep their order. MPI.UNDEFINED gives MPI.COMM_NULL, or None if
        no program has imported MPI."""
        for name, value in (("color", color), ("key", key)):
            if not isinstance(value, bool | np.bool_ | int | np.integer):
                raise TypeError(f"Split: {name} is {value!r}, not a whole number")
        if color < 0 and color != constant("UNDEFINED"):
            raise ValueError(f"Split: color is {color}; it has to be 0 or more")
        return self._split("Split", int(color), int(key))

    def Dup(self) -> GroupComm | None:
        return self._split("Dup", 0, self.rank)

    def Free(self) -> None:
        """Do nothing: a practice communicator holds nothing to free."""

    def Barrier(self) -> None:
        self._meet("Barrier", None, lambda brought: brought)

    barrier = Barrier

    def Bcast(self, buf, root: int = 0) -> None:
        here = self._is_root("Bcast", root)
        values = flat(buf, writeable=not here)
        self._arrays("Bcast", values, None if here else values, lambda b: [b[root]] * self.size, root=root)

    def Gather(self, sendbuf, recvbuf=None, root: int = 0) -> None:
        here = self._is_root("Gather", root)
        send, recv = two("Gather", sendbuf, recvbuf, recv_blocks=self.size) if here else (flat(sendbuf), None)
        self._arrays("Gather", send, recv, self._joined, nbytes=self.size * send.nbytes, root=root)

    def Scatter(self, sendbuf, recvbuf, root: int = 0) -> None:
        here, recv = self._is_root("Scatter", root), flat(recvbuf, writeable=True)
        send = two("Scatter", sendbuf, recvbuf, send_blocks=self.size)[0] if here else recv[:0]
        whole = {"elements": recv.size, "nbytes": self.size * recv.nbytes}
        self._arrays("Scatter", send, recv, lambda b: np.split(b[root], self.size), **whole, root=root)

    def Allgather(self, sendbuf, recvbuf) -> None:
        if in_place := is_in_place(sendbuf):
            blocks = in_blocks("Allgather", recvbuf, self.size, writeable=True)
            send, recv = blocks[self.rank], blocks.reshape(-1)
        else:
            send, recv = two("Allgather", sendbuf, recvbuf, recv_blocks=self.size)
        self._arrays("Allgather", send, recv, self._joined, nbytes=recv.nbytes, IN_PLACE=in_place)

    def Reduce(self, sendbuf, recvbuf=None, op=None, root: int = 0) -> None:
        here = self._is_root("Reduce", root)
        if here and is_in_place(sendbuf):
            send = recv = flat(recvbuf, writeable=True)
        else:
            send, recv = two("Reduce", sendbuf, recvbuf) if here else (flat(sendbuf), None)
        operation = operation_name(op, send.dtype)
        self._arrays("Reduce", send, recv, lambda b: [reduced(b, op)] * self.size, op=operation, root=root)

    def Allreduce(self, sendbuf, recvbuf, op=None) -> None:
        self._wait([self._allreduce("Allreduce", sendbuf, recvbuf, op)])

    def Iallreduce(self, sendbuf, recvbuf, op=None) -> GroupRequest:
        return GroupRequest(self, [self._allreduce("Iallreduce", sendbuf, recvbuf, op)])

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=None) -> None:
        if is_in_place(sendbuf):
            blocks = in_blocks("Reduce_scatter_block", recvbuf, self.size, writeable=True)
            send, recv = blocks.reshape(-1), blocks[0]
        else:
            send, recv = two("Reduce_scatter_block", sendbuf, recvbuf, send_blocks=self.size)
        self._reduce_scatter("Reduce_scatter_block", send, recv, [recv.size] * self.size, op)

    def Reduce_scatter(self, sendbuf, recvbuf, recvcounts=None, op=None) -> None:
        """Reduce and scatter. recvcounts: the number of elements for each rank; by default the length of recvbuf,
        the same on all ranks."""
        send, recv = flat(sendbuf), flat(recvbuf, writeable=True)
        counts = [recv.size] * self.size if recvcounts is None else [int(count) for count in recvcounts]
        if len(counts) != self.size or sum(counts) != send.size or counts[self.rank] != recv.size:
            sizes = f"send has {send.size} elements, recv {recv.size}"
            raise ValueError(f"Reduce_scatter: {sizes}, the counts of {self.size} ranks are {counts}")
        check_pair("Reduce_scatter", send, recv)
        self._reduce_scatter("Reduce_scatter", send, recv, counts, op)

    def Alltoall(self, sendbuf, recvbuf) -> None:
        if in_place := is_in_place(sendbuf):
            send = recv = in_blocks("Alltoall", recvbuf, self.size, writeable=True).reshape(-1)
        else:
            send, recv = two("Alltoall", sendbuf, recvbuf, self.size, self.size)
            in_blocks("Alltoall", send, self.size)

        def turned(brought: list) -> list:
            return [np.concatenate(blocks) for blocks in zip(*(np.split(b, self.size) for b in brought), strict=True)]

        self._arrays("Alltoall", send, recv, turned, IN_PLACE=in_place)

    def Isend(self, buf, dest: int, tag: int = 0) -> GroupRequest:
        values = elements(buf)
        return self._message("dest", Operation(SEND, self.rank, dest, tag, values, data=values.tobytes()))

    def Irecv(self, buf, source: int, tag: int = 0) -> GroupRequest:
        return self._message("source", Operation(RECV, self.rank, source, tag, elements(buf, writeable=True)))

    def bcast(self, obj=None, root: int = 0):
        self._is_root("bcast", root)
        return self._objects("bcast", obj, lambda brought: [brought[root]] * self.size, root=root)

    def gather(self, sendobj, root: int = 0) -> list | None:
        here = self._is_root("gather", root)
        everyone = self._objects("gather", sendobj, self._listed, root=root)
        return everyone if here else None

    def scatter(self, sendobj=None, root: int = 0):
        if self._is_root("scatter", root):
            sendobj = self._one_for_each("scatter", sendobj)
        return self._objects("scatter", sendobj, lambda brought: brought[root], root=root)

    def allgather(self, sendobj) -> list:
        return self._objects("allgather", sendobj, self._listed)

    def reduce(self, sendobj, op=None, root: int = 0):
        here, name = self._is_root("reduce", root), operation_name(op)
        total = self._objects("reduce", sendobj, lambda b: [reduced(b, op, True)] * self.size, op=name, root=root)
        return total if here else None

    def allreduce(self, sendobj, op=None):
        name = operation_name(op)
        return self._objects("allreduce", sendobj, lambda b: [reduced(b, op, True)] * self.size, op=name)

    def alltoall(self, sendobj) -> list:
        objects = self._one_for_each("alltoall", sendobj)
        return self._objects("alltoall", objects, lambda b: [list(one) for one in zip(*b, strict=True)])

    def __getattr__(self, name: str):
        raise AttributeError(f"these practice ranks know {KNOWN}; not {name!r}")

    def __repr__(self) -> str:
        return f"<practice communicator of ranks {', '.join(map(str, self._ranks))}>"

    def _allreduce(self, name: str, sendbuf, recvbuf, op):
        if in_place := is_in_place(sendbuf):
            send = recv = flat(recvbuf, writeable=True)
        else:
            send, recv = two(name, sendbuf, recvbuf)
        alike = {"op": operation_name(op, send.dtype), "IN_PLACE": in_place}
        return self._start_arrays(name, send, recv, lambda b: [reduced(b, op)] * self.size, **alike)

    def _reduce_scatter(self, name: str, send, recv, counts: list[int], op) -> None:
        ends = np.cumsum(counts)[:-1]
        alike = {"op": operation_name(op, send.dtype), "counts": counts}
        self._arrays(name, send, recv, lambda b: np.split(reduced(b, op), ends), **alike)

    def _message(self, name: str, one: Operation) -> GroupRequest:
        if one.peer not in range(self.size):
            raise ValueError(f"{name} is {one.peer!r}, but the ranks are 0 to {self.size - 1}")
        one.rank, one.peer, one.group = self._ranks[self.rank], self._ranks[one.peer], self._name
        one.posted = self._scheduler.clock[one.rank]
        self._scheduler.mailbox.post(one)
        return GroupRequest(self, [one])

    def _joined(self, brought: list) -> list:
        return [np.concatenate(brought)] * self.size

    def _listed(self, brought: list) -> list:
        return [brought] * self.size

    def _is_root(self, name: str, root) -> bool:
        if not isinstance(root, int | np.integer) or not 0 <= root < self.size:
            raise ValueError(f"{name}: root is {root!r}, but the ranks are 0 to {self.size - 1}")
        return self.rank == root

    def _one_for_each(self, name: str, objects) -> list:
        objects = list(objects)
        if len(objects) != self.size:
            raise ValueError(f"{name}: {len(objects)} objects for {self.size} ranks")
        return objects
