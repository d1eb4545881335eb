"""The group that an answer gets on practice ranks, and answers run in one or several of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.practice_ranks import Messages
from labs_helpers.practice.place import OWN_FILES
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks
from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import ERRORS, explained

DETOUR = "a communicator was used past group (COMM_WORLD, group.comm); group's own methods take tensors, and count"

OWN_FILES.add(__file__)  # a deadlock names the line of the answer that called a Group


class Group(PracticeCommunication):
    """Knows when another rank's thread calls it, by a name that all ranks share, and what was not waited for."""

    def __init__(self, comm: Any) -> None:
        self._thread, self.total = threading.get_ident(), 0
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
        self.total += 1  # collectives of all calls
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


def in_groups(case: Any, student: Callable, call: Callable, own: Sequence[tuple], errors: Messages = ()) -> list[list]:
    """What `call(student, group, *own)` returned on each rank of each of case.groups groups of case.ranks ranks.

    own: of the ranks of the first group, then of the next. Two groups have every other rank of all each, the last one
    first. errors: (pattern, cause) of error messages, beside those of all groups. Raises Wrong, too where a rank has
    taken part in collectives that its group does not know of.
    """
    groups, size = case.groups, case.ranks
    order = [size * (r % groups) + (size - 1 - r // groups if groups > 1 else r) for r in range(groups * size)]

    def on_rank(student: Callable, comm: Any, *arguments: Any) -> Any:
        group = Group(comm if groups == 1 else comm.Split(color=comm.rank % groups, key=-comm.rank))
        return call(student, group, *arguments), group.total

    with explained(case.sizes):
        run = on_ranks(case.name, student, on_rank, [own[place] for place in order], errors=(*errors, *ERRORS))
    for rank, (_, counted) in enumerate(run.results):
        if counted != len(run.of(rank)):
            found = f"rank {rank} took part in {len(run.of(rank))} collectives, of which group made {counted}"
            raise Wrong(case.name, found, cause=DETOUR)
    results = [run.results[order.index(place)][0] for place in range(groups * size)]
    return [results[first : first + size] for first in range(0, len(results), size)]
