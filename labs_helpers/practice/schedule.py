"""The schedule of a practice run: which messages travelled, when, and how many bytes each rank sent."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Message:
    """One message of `nbytes` bytes. Times are logical steps: a message takes one, all else takes none.

    `posted`: when the sender reached its send. `send_time`: when the message left, which is later when the receiver
    came later (a synchronous send waits), or when another message of that rank was on its way: a rank sends one at
    a time and receives one at a time, both at once. `recv_time`: when the receiver had it. For a message that
    nobody received (`Practice.unreceived`) they are None, except `send_time` of one that left without waiting.
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
    """What came of a practice run. Lists have one entry a rank; None among `results` also for a rank that was ended.

    `messages`: those received, by time. `unreceived`: those sent and never received. `barriers`: the times at which
    all ranks had reached a barrier. `never_waited`: 'rank 0: Isend to 1' for each request that nobody waited for.
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
        """Logical steps until the last message was there."""
        return max((m.recv_time for m in self.messages), default=0)

    @property
    def bytes_sent(self) -> list[int]:
        """Bytes each rank sent, those that nobody received among them."""
        return self._by_rank((m.source, m.nbytes) for m in self.messages + self.unreceived)

    @property
    def bytes_received(self) -> list[int]:
        return self._by_rank((m.dest, m.nbytes) for m in self.messages)

    @property
    def messages_sent(self) -> list[int]:
        """Messages each rank sent, those that nobody received among them."""
        return self._by_rank((m.source, 1) for m in self.messages + self.unreceived)

    def _by_rank(self, amounts: Iterable[tuple[int, int]]) -> list[int]:
        totals = [0] * self.size
        for rank, amount in amounts:
            totals[rank] += amount
        return totals
