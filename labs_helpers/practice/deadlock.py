"""Describe a deadlock: what each rank waits for and where, and the chain of ranks that explains it."""

from __future__ import annotations

from dataclasses import dataclass

from labs_helpers.practice.errors import PracticeError
from labs_helpers.practice.mailbox import ANY, BARRIER, COLLECTIVE, RECV, SEND, Operation
from labs_helpers.practice.place import place

SHOWN = 8  # ranks that are described one by one


@dataclass(frozen=True)
class Standing:
    """The state of a rank when no rank can go on.

    waits: the operations it waits for (a send and a receive in a Sendrecv), none if it has ended. call: Send, Recv,
    Sendrecv, Barrier, or Wait for requests. place: 'ring_shift, line 7: comm.Send(block, right)', or '' if unknown.
    """

    rank: int
    waits: tuple[Operation, ...]
    call: str
    place: str

    @property
    def ended(self) -> bool:
        return not self.waits


class Deadlock(PracticeError):
    """No rank can go on: each waits for another, or for one that has ended.

    ranks: the state of each. chain: ranks, each waiting for the next, around a circle (the last is the first again) or
    up to one that has ended. sends, receives: those without a partner. requests: of Isend and Irecv, not waited for
    yet.
    """

    def __init__(self, ranks: list[Standing], sends, receives, requests):
        self.ranks, self.sends, self.receives, self.requests = ranks, list(sends), list(receives), list(requests)
        self.chain = self._chain()
        super().__init__(_text(self))

    @classmethod
    def of(cls, scheduler) -> Deadlock:
        """Return the deadlock of `scheduler`'s ranks."""
        frames = scheduler.frames()
        ranks = [
            Standing(
                rank,
                tuple(one for one in waiting if one.done is None),
                _call(waiting, scheduler.requests),
                place(frames[rank]) if rank in frames else "",
            )
            for rank, waiting in enumerate(scheduler.waiting)
        ]
        waited_for = {one for waiting in scheduler.waiting for one in waiting}
        requests = [one for one in scheduler.requests if not one.finished and one not in waited_for]
        return cls(ranks, scheduler.mailbox.sends, scheduler.mailbox.receives, requests)

    def awaited(self, rank: int) -> int | None:
        """Return the rank that `rank` waits for first; None if no remaining rank could complete its wait."""
        first = self.ranks[rank].waits[0]
        if first.peer is not ANY:
            return first.peer
        if first.kind == COLLECTIVE:
            return min((self.ranks[other].ended, other) for other in first.absent())[1]
        away = [one for one in self.ranks if (one.call != "Barrier" if first.kind == BARRIER else one.rank != rank)]
        return min(((one.ended, one.rank) for one in away), default=(True, None))[1]

    def other_tag(self, wait: Operation) -> int | None:
        """Return the tag of a message that `wait` would receive but for its tag; None if there is none."""
        sent = (one for one in self.sends if one.peer == wait.rank and wait.peer in (ANY, one.rank))
        return next((one.tag for one in sent), None) if wait.kind == RECV else None

    def _chain(self) -> list[int]:
        chains = []
        for start in (one.rank for one in self.ranks if not one.ended):
            chain = [start]
            while not self.ranks[chain[-1]].ended and (following := self.awaited(chain[-1])) is not None:
                chain.append(following)
                if following in chain[:-1]:
                    return chain[chain.index(following) :]
            chains.append(chain)
        return min(chains, key=len)


def _call(waiting: list[Operation], requests: list[Operation]) -> str:
    """Return the call that waits for the operations `waiting`, '' if there are none."""
    if not waiting or waiting[0] in requests:
        return "Wait" if waiting else ""
    if waiting[0].kind == COLLECTIVE:
        return waiting[0].name
    return "Sendrecv" if len(waiting) > 1 else waiting[0].kind.capitalize()


def _text(deadlock: Deadlock) -> str:
    """Return the chain, followed by one line per rank."""
    lines = [f"rank {one.rank} {_standing(deadlock, one)}" for one in deadlock.ranks[:SHOWN]]
    more = len(deadlock.ranks) - SHOWN
    return "\n  ".join([_sentence(deadlock), *lines, *([f"… and {more} more ranks"] if more > 0 else [])])


def _sentence(deadlock: Deadlock) -> str:
    chain = deadlock.chain
    waiting = [deadlock.ranks[rank] for rank in chain if not deadlock.ranks[rank].ended]
    circle = len(chain) > 1 and chain[0] == chain[-1]
    if circle:
        waiting.pop()
    text = f"rank {chain[0]} " + ", which ".join(_first_wait(deadlock, one) for one in waiting[:SHOWN])
    if len(waiting) > SHOWN:
        return f"{text}, and so on" + (f", round to {chain[-1]}" if circle else "")
    if circle and len(chain) == 2:
        return f"{text}, itself"
    return f"{text}, which has ended" if deadlock.ranks[chain[-1]].ended and not text.endswith("ended") else text


def _standing(deadlock: Deadlock, one: Standing) -> str:
    """Say what a rank waits for and where; for a Sendrecv, both halves if both are open."""
    if one.ended:
        return "has ended"
    text, first = _first_wait(deadlock, one), one.waits[0]
    receive = next((wait for wait in one.waits if wait.kind == RECV), first)
    if receive is not first:
        tag, source = _tag(deadlock, receive), receive.peer
        text += " and for a message"
        text += f"{tag} from any rank" if source is ANY else f" from {source}{tag or _instead(deadlock, one, source)}"
    return f"{text}, in {one.place}" if one.place else text


def _instead(deadlock: Deadlock, one: Standing, source: int) -> str:
    """Say what `source` does while a rank waits for its message."""
    if deadlock.ranks[source].ended:
        return " (which has ended)"
    dests = [send.peer for send in deadlock.sends if send.rank == source]
    if one.rank in dests:
        return ""
    return f" (which sends to {' and '.join(map(str, dests))})" if dests else " (which sends nothing)"


def _first_wait(deadlock: Deadlock, one: Standing) -> str:
    wait, awaited = one.waits[0], deadlock.awaited(one.rank)
    if wait.kind == BARRIER:
        return f"waits in a barrier for {awaited}"
    if wait.kind == COLLECTIVE:
        return f"waits in {wait} for {awaited}"
    tag = _tag(deadlock, wait)
    if wait.kind == SEND:
        return f"waits to send to {wait.peer}{tag}"
    if wait.peer is not ANY:
        return f"waits for a message from {wait.peer}{tag}"
    if awaited is None:
        return f"waits for a message{tag}, but there is no other rank"
    if deadlock.ranks[awaited].ended:
        return f"waits for a message{tag} from any rank, but all others have ended"
    return f"waits for a message{tag} from any rank, such as {awaited}"


def _tag(deadlock: Deadlock, wait: Operation) -> str:
    """Return ' (tag 4; one with tag 3 is there)', if different tags could be what keeps a send and a receive apart."""
    if wait.tag is ANY or len({one.tag for one in (*deadlock.sends, *deadlock.receives)} - {ANY}) < 2:
        return ""
    there = deadlock.other_tag(wait)
    return f" (tag {wait.tag}" + (")" if there is None else f"; one with tag {there} is there)")
