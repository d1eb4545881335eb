"""A collective among practice ranks: who has arrived, each rank's contribution, and each rank's result when all have
arrived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from labs_helpers.practice.errors import SendBufferOverwritten
from labs_helpers.practice.mailbox import Operation


class Mismatch(RuntimeError):
    """The ranks of a communicator do not call the same collectives in the same order with the same sizes."""


@dataclass(frozen=True)
class Collective:
    """A completed collective of `ranks` (of the world, in the communicator's order). nbytes: of its whole tensor
    (the gathered one, the one that is scattered); 0 for Python objects. An Iallreduce counts as an Allreduce."""

    name: str
    ranks: tuple[int, ...]
    nbytes: int


@dataclass(eq=False)
class Call(Operation):
    """A rank's arrival at a collective. `buffer`: its input, which must not change before the collective is done."""

    scope: ClassVar[str] = "communicator"  # the library's word for the group of ranks

    name: str = ""
    ranks: tuple[int, ...] = ()  # of the world, in the communicator's order
    alike: dict[str, Any] = field(default_factory=dict)  # the values that must agree on all ranks
    brought: Any = None
    result: Any = None  # its result, when all ranks have arrived
    recv: np.ndarray | None = None  # the buffer for that result
    rendezvous: Rendezvous = field(default_factory=lambda: Rendezvous())

    def __str__(self) -> str:
        return f"{self.name} of ranks {', '.join(map(str, self.ranks))}"

    def finish(self) -> None:
        """Store the result in its buffer, only now: a rank that reads it earlier finds the old contents."""
        if self.finished:
            return
        self.finished = True
        if self.buffer is not None and self.buffer.tobytes() != self.brought.tobytes():
            raise SendBufferOverwritten(
                f"send buffer overwritten: rank {self.rank} changed what it gives to {self.name} before that was "
                "complete; Wait first"
            )
        if self.recv is not None:
            self.recv[...] = self.result

    def absent(self) -> list[int]:
        """Return the ranks that have not arrived yet."""
        here = {call.rank for call in self.rendezvous.calls.values()}
        return [rank for rank in self.ranks if rank not in here]


@dataclass(eq=False)
class Rendezvous:
    """One collective of one communicator: the calls of the ranks that have arrived, by their position in it."""

    calls: dict[int, Call] = field(default_factory=dict)

    def join(self, place: int, call: Call, finish: Callable[[list], Any]) -> bool:
        """Add a call. Return True if all ranks are there now; each then has its result. finish(all contributions)
        returns one result per rank."""
        for other in self.calls.values():
            _compare(call, other)
        self.calls[place], call.rendezvous = call, self
        if len(self.calls) < len(call.ranks):
            return False
        calls = [self.calls[place] for place in range(len(call.ranks))]
        results = finish([one.brought for one in calls])
        end = max(one.posted for one in calls) + 1
        for one, result in zip(calls, results, strict=True):
            one.result, one.done = result, end
        return True


@dataclass
class World:
    """The collectives of a run: the completed ones, and by communicator and turn the ones that ranks have arrived
    at."""

    calls: list[Collective] = field(default_factory=list)
    rendezvous: dict[tuple, Rendezvous] = field(default_factory=dict)


def _compare(call: Call, other: Call) -> None:
    if call.name != other.name:
        raise Mismatch(
            f"rank {call.rank} calls {call.name} where rank {other.rank}, of the same {call.scope}, calls "
            f"{other.name}: all ranks of a {call.scope} call the same collectives in the same order"
        )
    for what, mine in call.alike.items():
        if mine != (theirs := other.alike[what]):
            raise Mismatch(f"{call.name}: {what} is {mine} on rank {call.rank} and {theirs} on rank {other.rank}")
