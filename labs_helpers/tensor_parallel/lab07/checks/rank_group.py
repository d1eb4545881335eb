"""The group that an answer receives on practice ranks, and runs of an answer in one or several groups."""

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

DETOUR = (
    "it bypasses group with another communicator (COMM_WORLD, group.comm); call group's methods, which take tensors"
)

OWN_FILES.add(__file__)  # so a deadlock message names the student's line that called a Group


class Group(PracticeCommunication):
    """A group that detects calls from another rank's thread, and counts the all-reduces that nobody waited for."""

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
        self.total += 1  # collectives over all calls
        super()._count(name, nbytes)


class _Started:
    """A started all-reduce, whose result arrives with wait()."""

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
    """Return the results of `call(student, group, *own)` by group and rank, for case.groups groups of case.ranks ranks.

    own: arguments for the ranks of the first group, then of the next. Two groups take alternate ranks, in reverse
    order. errors: additional (pattern, cause) pairs for error messages. Raises Wrong, also if a rank took part in
    collectives that its group did not make.
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
            found = f"rank {rank} took part in {len(run.of(rank))} collectives, but group made only {counted}"
            raise Wrong(case.name, found, cause=DETOUR)
    results = [run.results[order.index(place)][0] for place in range(groups * size)]
    return [results[first : first + size] for first in range(0, len(results), size)]
