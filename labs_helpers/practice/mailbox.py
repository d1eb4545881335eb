"""Match sends and receives of practice ranks: in order, by source and tag, at a logical time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labs_helpers.practice.errors import SendBufferOverwritten, Truncated
from labs_helpers.practice.schedule import Message

SEND, RECV, BARRIER, COLLECTIVE = "send", "recv", "barrier", "collective"
ANY = None  # source or tag of a receive that accepts any


@dataclass(eq=False)
class Operation:
    """One rank's half of a message, or its arrival at a barrier. `done`: the time of its completion, None before."""

    kind: str
    rank: int
    peer: int | None = ANY
    tag: int | None = ANY
    buffer: np.ndarray | None = None
    posted: int = 0
    data: bytes = b""
    done: int | None = None
    left: int | None = None  # when an eager message left
    met: Operation | None = None  # a receive's send
    finished: bool = False
    group: tuple = ()  # the communicator's name: messages of different communicators never meet

    def __str__(self) -> str:
        other = "any rank" if self.peer is ANY else self.peer
        return f"rank {self.rank}: " + (f"Isend to {other}" if self.kind == SEND else f"Irecv from {other}")

    def finish(self) -> None:
        """Complete a wait: a receive gets its data only now, and a send verifies that its buffer has not changed.

        Raises SendBufferOverwritten, Truncated or TypeError (the two halves have different dtypes).
        """
        if self.finished:
            return
        self.finished = True
        if self.kind == SEND and self.buffer.tobytes() != self.data:
            before = np.frombuffer(self.data, self.buffer.dtype)
            first = next(i for i in range(before.size) if before[i].tobytes() != self.buffer[i].tobytes())
            raise SendBufferOverwritten(
                f"send buffer overwritten: rank {self.rank} changed element {first} of {before.size} of what it sends "
                f"to rank {self.peer} before the send was complete; Wait first, or send from another buffer"
            )
        if self.kind == RECV and self.met is not None:
            self._take(self.met)

    def _take(self, send: Operation) -> None:
        if len(send.data) > self.buffer.nbytes:
            sent, into = f"{len(send.data)} bytes", f"{self.buffer.nbytes}"
            if send.buffer.itemsize > 1:  # bytes may be those of other elements
                sent, into = f"{sent} ({send.buffer.size} elements)", f"{into} ({self.buffer.size})"
            raise Truncated(f"message truncated: rank {send.rank} sent {sent}, rank {self.rank} receives into {into}")
        kinds = send.buffer.dtype, self.buffer.dtype
        if kinds[0] != kinds[1] and not any(kind in (np.uint8, np.int8) for kind in kinds):
            raise TypeError(f"rank {send.rank} sent {kinds[0]}, rank {self.rank} receives it as {kinds[1]}")
        self.buffer.view(np.uint8)[: len(send.data)] = np.frombuffer(send.data, np.uint8)


class Mailbox:
    """The unmatched sends and receives, and the messages of the matched ones."""

    def __init__(self, size: int, eager_limit: int | None):
        self.eager_limit = eager_limit
        self.sends: list[Operation] = []  # in the order of posting, so messages never overtake each other
        self.receives: list[Operation] = []
        self.messages: list[Message] = []
        self.out_free, self.in_free = [0] * size, [0] * size  # when a rank can send, and receive, its next message

    def post(self, operation: Operation, synchronous: bool = False) -> None:
        """Add a send or a receive; complete it and its other half if that is already there."""
        if operation.kind == SEND:
            if self.eager_limit is not None and len(operation.data) <= self.eager_limit and not synchronous:
                operation.left = max(operation.posted, self.out_free[operation.rank])
                operation.done = self.out_free[operation.rank] = operation.left + 1
            self._meet(operation, self.receives, self.sends)
        else:
            self._meet(operation, self.sends, self.receives)

    def _meet(self, new: Operation, others: list[Operation], own: list[Operation]) -> None:
        fitting = [other for other in others if _fits(*((new, other) if new.kind == SEND else (other, new)))]
        if not fitting:
            own.append(new)
            return
        other = min(fitting, key=lambda operation: operation.posted)  # the first in the list among equals
        others.remove(other)
        self._travel(*((new, other) if new.kind == SEND else (other, new)))

    def _travel(self, send: Operation, receive: Operation) -> None:
        source, dest = send.rank, receive.rank
        if send.left is None:
            start = max(send.posted, receive.posted, self.out_free[source], self.in_free[dest])
            arrival = send.done = self.out_free[source] = start + 1
        else:
            start = send.left
            arrival = max(start + 1, self.in_free[dest], receive.posted)
        receive.met, receive.done = send, arrival
        self.in_free[dest] = arrival
        self.messages.append(Message(source, dest, send.tag, len(send.data), send.posted, start, arrival))

    def unreceived(self) -> list[Message]:
        return [Message(s.rank, s.peer, s.tag, len(s.data), s.posted, s.left, None) for s in self.sends]


def _fits(send: Operation, receive: Operation) -> bool:
    to_it = send.peer == receive.rank and send.group == receive.group
    return to_it and receive.peer in (ANY, send.rank) and receive.tag in (ANY, send.tag)
