"""Runs layers on practice ranks: forward of all, then backward, with what each call returned, sent and changed."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from labs_helpers.collectives.practice.groups import GroupRun
from labs_helpers.tensor_parallel.lab07.checks.copies import what_changed
from labs_helpers.tensor_parallel.lab07.checks.groups import on_groups
from labs_helpers.tensor_parallel.lab07.checks.linear_cases import OPERANDS, Case, Layer, operands_of
from labs_helpers.tensor_parallel.lab07.checks.tensor_errors import explained
from labs_helpers.tensor_parallel.practice import PracticeCommunication


@dataclass
class Pass:
    """One call of a rank's, of forward or of backward. returned: with copies of its tensors; payload: bytes by
    collective; sent: bytes that left the rank; changed: which operand is no longer as it was, in words; waiting: how
    many all-reduces were started and not waited for."""

    returned: Any
    calls: Counter
    payload: Counter
    sent: int
    changed: str
    waiting: int
    overwritten: list[int] = field(default_factory=list)  # which of the returned tensors a later call has changed


@dataclass
class Seen:
    """What a rank's calls for one layer gave."""

    forward: Pass
    backward: list[Pass]


class Group(PracticeCommunication):
    """Knows when another rank's thread calls it, by a name that all ranks share, and what was not waited for."""

    def __init__(self, comm: Any) -> None:
        self._thread = threading.get_ident()
        super().__init__(comm)

    def reset(self) -> None:
        super().reset()
        self.waiting = 0

    def _start_all_reduce(self, x: Tensor) -> _Started:
        self.waiting += 1
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


def run_layers(case: Case, student: Callable, groups: list[list[Layer]], sizes: dict[str, int]) -> GroupRun:
    """Its results: each rank's list of a Seen per layer. sizes: names of dimensions, for errors. Raises Wrong."""
    places = [place_of(case, rank) for rank in range(case.ranks * case.groups)]
    own = [(case, [operands_of(case, layer, place) for layer in groups[group]]) for group, place in places]
    with explained(sizes):
        return on_groups(case.name, student, _on_rank, own)


def place_of(case: Case, rank: int) -> tuple[int, int]:
    """(group, rank in the group). Two groups have every other rank each, the last one first."""
    return (0, rank) if case.groups == 1 else (rank % case.groups, case.ranks - 1 - rank // case.groups)


def _on_rank(student: Callable, comm, case: Case, layers: list[tuple]) -> list[Seen]:
    if case.groups > 1:
        comm = comm.Split(color=comm.rank % case.groups, key=-comm.rank)
    group = Group(comm)
    kept: list[tuple[Pass, Any]] = []
    seen, backwards = [], []
    for operands, _ in layers:
        answer = _watched(kept, group, operands, student, *operands, group)
        seen.append(Seen(kept[-1][0], []))
        backwards.append(answer[1] if two_parts(answer) else None)
    for (operands, grad_outs), one, backward in reversed(list(zip(layers, seen, backwards, strict=True))):
        for grad_out in grad_outs if backward else ():
            _watched(kept, group, [*operands, grad_out], backward, grad_out)
            one.backward.append(kept[-1][0])
    for one, now in kept:
        pairs = zip(_parts(one.returned), _parts(now), strict=True)
        one.overwritten = [i for i, (before, after) in enumerate(pairs) if what_changed("", before, _detached(after))]
    return seen


def two_parts(answer) -> bool:
    """Whether it could be (out, backward)."""
    return isinstance(answer, (tuple, list)) and len(answer) == 2 and callable(answer[1])


def _watched(kept: list, group: Group, operands: list[Tensor], function: Callable, *arguments):
    """function(*arguments); what is known of the call goes to `kept`, with the very tensors that it returned."""
    before = [operand.detach().clone() for operand in operands]
    group.reset()
    returned = function(*arguments)
    said = (what_changed(*one) for one in zip(OPERANDS, before, map(_detached, operands), strict=False))
    changed = next(filter(None, said), "")
    copies = [part.clone() if isinstance(part, Tensor) else part for part in map(_detached, _parts(returned))]
    answer = tuple(copies) if isinstance(returned, (tuple, list)) else copies[0]
    kept.append((Pass(answer, group.calls, group.payload, group.bytes_sent, changed, group.waiting), returned))
    return returned


def _parts(returned) -> list:
    return list(returned) if isinstance(returned, (tuple, list)) else [returned]


def _detached(part):
    return part.detach() if isinstance(part, Tensor) else part
