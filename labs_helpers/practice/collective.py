"""A collective among practice ranks: who has come, what each has brought, and what each gets once all are there."""

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
    """One that all of `ranks` (of the world, in their order in the communicator) took part in. nbytes: of its whole
    tensor: the gathered one, the one that is scattered; 0 for Python's objects. Iallreduce is an Allreduce here."""

    name: str
    ranks: tuple[int, ...]
    nbytes: int


@dataclass(eq=False)
class Call(Operation):
    """A rank's arrival at a collective. `buffer`: what it gives, not to be changed before the collective is done."""

    scope: ClassVar[str] = "communicator"  # the library's word for the ranks that call it together

    name: str = ""
    ranks: tuple[int, ...] = ()  # of the world, in the communicator's order
    alike: dict[str, Any] = field(default_factory=dict)  # what has to be the same on all ranks
    brought: Any = None
    result: Any = None  # what it gets when all have come
    recv: np.ndarray | None = None  # where that goes
    rendezvous: Rendezvous = field(default_factory=lambda: Rendezvous())

    def __str__(self) -> str:
        return f"{self.name} of ranks {', '.join(map(str, self.ranks))}"

    def finish(self) -> None:
        """The result goes to its buffer only now: whoever reads it earlier finds what was there."""
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
        """The ranks that have not come yet."""
        here = {call.rank for call in self.rendezvous.calls.values()}
        return [rank for rank in self.ranks if rank not in here]


@dataclass(eq=False)
class Rendezvous:
    """One collective of one communicator: the calls of the ranks that have come, by their place in it."""

    calls: dict[int, Call] = field(default_factory=dict)

    def join(self, place: int, call: Call, finish: Callable[[list], Any]) -> bool:
        """Whether all are there now; then each has its result. finish(what each brought) has a result for each."""
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
    """The collectives of a run: the complete ones, and by communicator and turn those that ranks have come to."""

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
