"""The schedule of a practice run: which messages traveled, when, and how many bytes each rank sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """One message of `nbytes` bytes. Times are logical steps: a message takes one step, and everything else takes none.

    `posted`: when the sender reached its send. `send_time`: when the message left. That is later if the receiver
    arrived later (a synchronous send waits), or if another message of that rank was under way: a rank can send one
    message and receive one at the same time, but not two. `recv_time`: when the receiver had it. A message that nobody
    received (`Practice.unreceived`) has None for these times, except for the `send_time` of one that left without
    waiting.
    """

    source: int
    dest: int
    tag: int
    nbytes: int
    posted: int
    send_time: int | None
    recv_time: int | None


@dataclass
class Practice:
    """The outcome of a practice run. Lists have one entry per rank; `results` also has None for a rank that was ended.

    `messages`: those received, by time. `unreceived`: those sent and never received. `barriers`: the times at which all
    ranks had reached a barrier. `never_waited`: 'rank 0: Isend to 1' for each request that nobody waited for.
    `requested`: how many receives were requests, of Irecv.
    """

    size: int
    results: list[Any]
    messages: list[Message] = field(default_factory=list)
    unreceived: list[Message] = field(default_factory=list)
    barriers: list[int] = field(default_factory=list)
    never_waited: list[str] = field(default_factory=list)
    requested: int = 0

    @property
    def steps(self) -> int:
        """Logical steps until the last message arrived."""
        return max((m.recv_time for m in self.messages), default=0)

    @property
    def bytes_sent(self) -> list[int]:
        """Bytes that each rank sent, including messages that nobody received."""
        return self._by_rank((m.source, m.nbytes) for m in self.messages + self.unreceived)

    @property
    def bytes_received(self) -> list[int]:
        return self._by_rank((m.dest, m.nbytes) for m in self.messages)

    @property
    def messages_sent(self) -> list[int]:
        """Messages that each rank sent, including those that nobody received."""
        return self._by_rank((m.source, 1) for m in self.messages + self.unreceived)

    def _by_rank(self, amounts: Iterable[tuple[int, int]]) -> list[int]:
        totals = [0] * self.size
        for rank, amount in amounts:
            totals[rank] += amount
        return totals
