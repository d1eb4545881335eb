"""The log of a run: the collectives of each rank, and the order of events."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

START, WAIT, DONE = "start", "wait", "done"


@dataclass(eq=False)
class Called:
    """A rank's call of a collective.

    rank: among all ranks; ranks: those of its group; number: how many collectives this rank had called before. nbytes,
    elements: of the whole tensor (the gathered one, the one that is scattered), or of several together. op: 'SUM',
    'AVG', …, or None. root: src or dst, within the group. asynchronous: async_op. address: data_ptr() of the rank's
    first input, which identifies the gradient. waited: True if wait() was called. again: True if one of its tensors was
    still under way.
    """

    rank: int
    name: str
    ranks: tuple[int, ...]
    number: int
    nbytes: int
    elements: int
    dtype: str
    op: str | None
    root: int | None
    asynchronous: bool
    address: int
    waited: bool = False
    again: bool = False

    def __str__(self) -> str:
        of = f" of {self.elements:,} × {self.dtype}" if self.dtype else ""
        return f"{self.name}{of}{', async' if self.asynchronous else ''}"


@dataclass(frozen=True)
class Event:
    """An event. what: START, WAIT (the rank enters wait()) or DONE (it goes on) of `call`, or a check's own mark."""

    rank: int
    what: str
    call: Called | None = None

    def __str__(self) -> str:
        return f"{self.what} {self.call.name}" if self.call else self.what


@dataclass
class ProcessRun:
    """The outcome of a run: one result per rank. calls: the collectives in the order of their starts. log: all
    events in order, which is the same every time. Ranks run one at a time, so the order between two ranks says
    little; within one rank it matters. A collective without async_op has START, WAIT and DONE in a row."""

    results: list[Any] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    log: list[Event] = field(default_factory=list)

    def of(self, rank: int) -> list[Called]:
        """Return the collectives that a rank called."""
        return [call for call in self.calls if call.rank == rank]

    def log_of(self, rank: int) -> list[str]:
        """Return a rank's log: ['backward begins', 'start all_reduce', 'backward ends', 'wait all_reduce', 'done
        all_reduce']"""
        return [str(event) for event in self.log if event.rank == rank]

    @property
    def never_waited(self) -> list[str]:
        """Return 'rank 0: all_reduce of 3 × float32, async' for each collective whose rank did not call wait()."""
        return [f"rank {call.rank}: {call}" for call in self.calls if call.asynchronous and not call.waited]

    def started_between(self, rank: int, begin: str, end: str) -> list[Called]:
        """Return a rank's collectives that started after a mark `begin` and before the next mark `end`, for all such
        pairs.

            run.started_between(0, "backward begins", "backward ends")   # those that can overlap with backward
        """
        return self._between(rank, START, begin, end)

    def waited_between(self, rank: int, begin: str, end: str) -> list[Called]:
        """Return the same for its calls of wait(), including collectives without async_op."""
        return self._between(rank, WAIT, begin, end)

    def _between(self, rank: int, what: str, begin: str, end: str) -> list[Called]:
        found, inside = [], False
        for event in self.log:
            if event.rank != rank:
                continue
            if event.call is None:
                inside = event.what == begin or (inside and event.what != end)
            elif inside and event.what == what:
                found.append(event.call)
        return found


def mark(group: Any, what: str) -> None:
    """Note in the log that this rank has reached a place, such as 'backward ends'. On a real group this does
    nothing."""
    if hasattr(group, "mark"):
        group.mark(what)
