"""The group that an answer gets on practice ranks, and where a rank stands when there are several groups."""

from __future__ import annotations

import threading
from typing import Any

from torch import Tensor

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.practice.place import OWN_FILES

OWN_FILES.add(__file__)  # a deadlock names the line of the answer that called a Group


class Group(PracticeCommunication):
    """Knows when another rank's thread calls it, by a name that all ranks share, and what was not waited for."""

    def __init__(self, comm: Any) -> None:
        self._thread = threading.get_ident()
        super().__init__(comm)

    def reset(self) -> None:
        super().reset()
        self.started = self.waiting = 0

    def all_reduce(self, x: Tensor, op: str = "sum", in_place: bool = False) -> Tensor:
        if not isinstance(op, str) or op not in self.operations:
            raise ValueError(f'all_reduce(t, op): op is {op!r}, not "sum" or "max"')
        return super().all_reduce(x, op, in_place)

    def _start_all_reduce(self, x: Tensor) -> _Started:
        self.started, self.waiting = self.started + 1, self.waiting + 1
        return _Started(self, x, self._all_reduce(x, "sum", False))

    def _count(self, name: str, nbytes: int) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError(f"{name} of another rank's group was called")
        super()._count(name, nbytes)


class _Started:
    """An all-reduce on its way, whose result comes with wait()."""

    def __init__(self, group: Group, x: Tensor, total: Tensor) -> None:
        self.group, self.x, self.total, self.done = group, x, total, False

    def wait(self) -> None:
        if not self.done:
            self.x.copy_(self.total)
            self.group.waiting -= 1
        self.done = True

    def poll(self) -> bool:
        return self.done


def place_of(rank: int, ranks: int, groups: int) -> tuple[int, int]:
    """(group, rank in the group). Two groups have every other rank each, the last one first."""
    return (0, rank) if groups == 1 else (rank % groups, ranks - 1 - rank // groups)


def group_of(comm: Any, groups: int) -> Group:
    """The Group of a rank, in the order of `place_of`."""
    return Group(comm if groups == 1 else comm.Split(color=comm.rank % groups, key=-comm.rank))
