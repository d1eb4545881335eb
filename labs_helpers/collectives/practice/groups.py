"""Practice ranks whose communicators have MPI's collectives and Split, by mpi4py's names.

    ran = practice_groups(lambda comm: comm.Split(color=comm.rank // 2).allgather(comm.rank), 4)
    ran.results          # [[0, 1], [0, 1], [2, 3], [2, 3]]
    ran.calls            # which collectives, of which ranks, of how many bytes

As in `practice`, a run is the same every time, and a deadlock is told the moment it exists. So is a collective that
not all ranks of a communicator call alike, which in MPI may hang, crash or give wrong numbers.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial, reduce
from typing import Any

import numpy as np

from labs_helpers.collectives.practice.baton import Baton
from labs_helpers.collectives.practice.communicator import constant
from labs_helpers.collectives.practice.mailbox import COLLECTIVE, Operation
from labs_helpers.collectives.practice.message_buffer import elements
from labs_helpers.collectives.practice.ranks import of_rank

IN_PLACE = object()
KNOWN = (
    "Get_rank, Get_size, rank, size, Split, Dup, Free, Barrier, Bcast, Allgather, Allreduce, Iallreduce, "
    "Reduce_scatter_block, Alltoall; for Python's objects bcast, gather, allgather, allreduce, alltoall"
)


class Mismatch(RuntimeError):
    """The ranks of a communicator do not call the same collectives in the same order with the same sizes."""


@dataclass(frozen=True)
class Collective:
    """One that all of `ranks` (of the world, in their order in the communicator) took part in. nbytes: of its whole
    tensor: the gathered one, the one that is scattered; 0 for Python's objects."""

    name: str
    ranks: tuple[int, ...]
    nbytes: int


@dataclass
class GroupRun:
    """What came of a run: a result for each rank, and the collectives in the order in which they were complete. Splits
    and barriers are not among them."""

    results: list[Any]
    calls: list[Collective]

    def of(self, rank: int) -> list[Collective]:
        """The collectives that a rank took part in."""
        return [call for call in self.calls if rank in call.ranks]


def practice_groups(function: Callable, size: int, *args, timeout: float = 10.0) -> GroupRun:
    """Run function(comm, *args) on `size` ranks; args, errors and time limit as those of `practice`."""
    baton, world = Baton(size, None), _World()
    ranks = tuple(range(size))
    functions = [
        partial(function, GroupComm(baton, world, (), ranks, rank), *(of_rank(arg, rank) for arg in args))
        for rank in ranks
    ]
    return GroupRun(baton.run(functions, timeout).results, world.calls)


@dataclass
class _World:
    calls: list[Collective] = field(default_factory=list)
    meetings: dict[tuple, dict[int, _Call]] = field(default_factory=dict)


@dataclass(eq=False)
class _Call(Operation):
    """A rank's arrival at a collective. brought: what it gives; result: what it gets when all have come."""

    name: str = ""
    ranks: tuple[int, ...] = ()
    alike: tuple = ()  # what has to be the same on all ranks
    brought: Any = None
    result: Any = None

    def __str__(self) -> str:
        return f"{self.name} of ranks {', '.join(map(str, self.ranks))}"


class GroupComm:
    """One rank's communicator: `ranks` of the world, of which it is the one at place `rank`."""

    def __init__(self, baton: Baton, world: _World, name: tuple, ranks: tuple[int, ...], rank: int):
        self._baton, self._world, self._name, self._ranks = baton, world, name, ranks
        self.rank, self.size, self._number = rank, len(ranks), 0

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Split(self, color: int = 0, key: int = 0) -> GroupComm | None:
        for name, value in (("color", color), ("key", key)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise TypeError(f"Split: {name} is {value!r}, not a whole number")
        if color < 0 and color != constant("UNDEFINED"):
            raise ValueError(f"Split: color is {color}; it has to be 0 or more")
        number = self._number
        everyone = self._meet("Split", (int(color), int(key)), lambda brought: [brought] * self.size, ())
        if color < 0:
            return None
        mine = sorted((k, rank) for rank, (c, k) in enumerate(everyone) if c == color)
        places = [rank for _, rank in mine]
        ranks = tuple(self._ranks[rank] for rank in places)
        return GroupComm(self._baton, self._world, (*self._name, number, color), ranks, places.index(self.rank))

    def Dup(self) -> GroupComm | None:
        return self.Split(0, self.rank)

    def Free(self) -> None:
        """Nothing is kept that would have to be freed."""

    def Barrier(self) -> None:
        self._meet("Barrier", None, lambda brought: brought, ())

    def Bcast(self, buf, root: int = 0) -> None:
        values = elements(buf, writeable=self.rank != root)
        self._check_root("Bcast", root)
        values[...] = self._arrays("Bcast", values, lambda brought: [brought[root]] * self.size, ("root", root))

    def Allgather(self, sendbuf, recvbuf) -> None:
        send, recv = self._both("Allgather", sendbuf, recvbuf, self.size)
        recv[...] = self._arrays("Allgather", send, lambda b: [np.concatenate(b)] * self.size, whole=recv.nbytes)

    def Allreduce(self, sendbuf, recvbuf, op=None) -> None:
        in_place = sendbuf is IN_PLACE or _is_in_place(sendbuf)
        send, recv = self._both("Allreduce", recvbuf if in_place else sendbuf, recvbuf, 1, in_place)
        recv[...] = self._arrays("Allreduce", send, lambda b: [_reduced(b, op)] * self.size, ("op", _name(op)))

    def Iallreduce(self, sendbuf, recvbuf, op=None) -> _Done:
        """Waits for the other ranks at once: a correct program does not notice."""
        self.Allreduce(sendbuf, recvbuf, op)
        return _Done()

    def Reduce_scatter_block(self, sendbuf, recvbuf, op=None) -> None:
        recv, send = self._both("Reduce_scatter_block", recvbuf, sendbuf, self.size, takes="recv")
        recv[...] = self._arrays(
            "Reduce_scatter_block", send, lambda b: np.split(_reduced(b, op), self.size), ("op", _name(op))
        )

    def Alltoall(self, sendbuf, recvbuf) -> None:
        send, recv = self._both("Alltoall", sendbuf, recvbuf, 1)
        if send.size % self.size:
            raise ValueError(f"Alltoall: {send.size} elements are not {self.size} equal blocks")

        def turned(brought):
            return list(np.stack([np.split(one, self.size) for one in brought], 1).reshape(self.size, -1))

        recv[...] = self._arrays("Alltoall", send, turned)

    def bcast(self, obj=None, root: int = 0):
        self._check_root("bcast", root)
        return self._objects("bcast", obj, lambda brought: [brought[root]] * self.size, ("root", root))

    def gather(self, sendobj, root: int = 0):
        self._check_root("gather", root)
        everyone = self._objects("gather", sendobj, lambda brought: [brought] * self.size, ("root", root))
        return everyone if self.rank == root else None

    def allgather(self, sendobj) -> list:
        return self._objects("allgather", sendobj, lambda brought: [brought] * self.size)

    def allreduce(self, sendobj, op=None):
        return self._objects("allreduce", sendobj, lambda b: [_reduced(b, op)] * self.size, ("op", _name(op)))

    def alltoall(self, sendobj) -> list:
        if len(sendobj) != self.size:
            raise ValueError(f"alltoall: {len(sendobj)} objects for {self.size} ranks")
        return self._objects("alltoall", list(sendobj), lambda b: [list(one) for one in zip(*b, strict=True)])

    def __getattr__(self, name: str):
        raise AttributeError(f"these practice ranks know {KNOWN}; not {name!r}")

    def __repr__(self) -> str:
        return f"<practice communicator of ranks {', '.join(map(str, self._ranks))}>"

    def _both(self, name: str, sendbuf, recvbuf, times: int, in_place: bool = False, takes: str = "send"):
        """The elements of both buffers. The second is to be `times` as long as the first, and neither may overlap."""
        small, large = elements(sendbuf, writeable=takes == "recv"), elements(recvbuf, writeable=takes == "send")
        other = "recv" if takes == "send" else "send"
        if times * small.size != large.size:
            each = f"{times} ranks × {small.size} are {times * small.size}" if times > 1 else f"{takes} {small.size}"
            raise ValueError(f"{name}: {other} has {large.size} elements, {each}")
        if small.dtype != large.dtype:
            raise TypeError(f"{name}: {takes} is {small.dtype}, {other} is {large.dtype}; they have to be the same")
        if not in_place and small.size and np.may_share_memory(small, large):
            raise ValueError(f"{name}: send and recv share memory; receive into an array of its own")
        return small, large

    def _arrays(self, name: str, send, finish: Callable, *alike, whole: int | None = None):
        alike = (("elements", send.size), ("dtype", str(send.dtype)), *alike)
        return self._meet(name, send.copy(), finish, alike, send.nbytes if whole is None else whole)

    def _objects(self, name: str, obj, finish: Callable, *alike):
        return copy.deepcopy(self._meet(name, copy.deepcopy(obj), finish, alike, 0))

    def _meet(self, name: str, brought, finish: Callable, alike: tuple, nbytes: int | None = None):
        """Waits until all ranks have called this collective; finish(what they brought) has a result for each."""
        met = self._world.meetings.setdefault((*self._name, self._number), {})
        self._number += 1
        me = self._ranks[self.rank]
        call = _Call(COLLECTIVE, me, posted=self._baton.clock[me], name=name, ranks=self._ranks)
        call.alike, call.brought = alike, brought
        for other in met.values():
            self._compare(call, other)
        met[self.rank] = call
        if len(met) == self.size:
            calls = [met[rank] for rank in range(self.size)]
            results = finish([one.brought for one in calls])
            end = max(one.posted for one in calls) + 1
            for one, result in zip(calls, results, strict=True):
                one.result, one.done = result, end
            if nbytes is not None:
                self._world.calls.append(Collective(name, self._ranks, nbytes))
        self._baton.wait(me, [call])
        return call.result

    def _compare(self, call: _Call, other: _Call) -> None:
        if call.name != other.name:
            raise Mismatch(
                f"rank {call.rank} calls {call.name} where rank {other.rank}, of the same communicator, calls "
                f"{other.name}: all its ranks call the same collectives in the same order"
            )
        for (what, mine), (_, theirs) in zip(call.alike, other.alike, strict=True):
            if mine != theirs:
                raise Mismatch(f"{call.name}: {what} is {mine} on rank {call.rank} and {theirs} on rank {other.rank}")

    def _check_root(self, name: str, root) -> None:
        if not isinstance(root, int | np.integer) or not 0 <= root < self.size:
            raise ValueError(f"{name}: root is {root!r}, but the ranks are 0 to {self.size - 1}")


class _Done:
    def Wait(self) -> bool:
        return True

    def Test(self) -> bool:
        return True


def _reduced(brought: list, op):
    return reduce(_function(op), brought)


def _function(op) -> Callable:
    names = {"SUM": np.add, "MAX": np.maximum, "MIN": np.minimum, "PROD": np.multiply}
    if _name(op) in names:
        return names[_name(op)]
    if callable(op) and not hasattr(op, "Is_commutative"):
        return op
    raise ValueError(f"practice ranks reduce with {', '.join(names)}, not {op!r}")


def _name(op) -> str:
    """'SUM' for what mpi4py calls MPI.SUM."""
    if op is None:
        return "SUM"
    known = [name for name in ("SUM", "MAX", "MIN", "PROD") if op is _of_mpi(name) or op == _of_mpi(name)]
    return known[0] if known else getattr(op, "__name__", repr(op))


def _is_in_place(buffer) -> bool:
    return not isinstance(buffer, np.ndarray | list | tuple) and buffer is _of_mpi("IN_PLACE")


def _of_mpi(name: str):
    mpi = sys.modules.get("mpi4py.MPI")
    return getattr(mpi, name) if mpi is not None else None
