"""A deadlock in words: who waits for whom, round the circle, and where in the code each rank stands."""

from __future__ import annotations

import linecache
from pathlib import Path

from labs_helpers.collectives.practice.mailbox import ANY, BARRIER, RECV, SEND, Operation

OWN_FILES = {str(path) for path in (*Path(__file__).parent.glob("*.py"), Path(__file__).parents[1] / "counting.py")}
SHOWN = 8  # ranks told one by one


def place(frame, lineno: int | None = None) -> str:
    """'ring_shift, line 7: comm.Send(block, right)': the innermost line that is not of the practice ranks."""
    while frame.f_back is not None and frame.f_code.co_filename in OWN_FILES:
        frame, lineno = frame.f_back, None
    lineno = lineno or frame.f_lineno
    text = linecache.getline(frame.f_code.co_filename, lineno).strip()
    return f"{frame.f_code.co_name}, line {lineno}" + (f": {text}" if text else "")


def tell(baton) -> str:
    """Why no rank of `baton` can go on. First the chain that explains it, then a line for each rank."""
    frames, lines = baton.frames(), []
    for rank in range(baton.size):
        if rank in baton.ended:
            lines.append(f"rank {rank} has ended")
        else:
            where = f", in {place(frames[rank])}" if rank in frames else ""
            lines.append(f"rank {rank} {_waits_for_both(baton, rank)}{where}")
    more = [f"… and {baton.size - SHOWN} more ranks"] if baton.size > SHOWN else []
    return "\n  ".join([_sentence(baton, _chain(baton)), *lines[:SHOWN], *more])


def _chain(baton) -> list[int]:
    """Ranks, each waiting for the next: round a circle (the last is the first again), or up to one that has ended."""
    chains = []
    for start in sorted(set(range(baton.size)) - baton.ended):
        chain = [start]
        while chain[-1] not in baton.ended and (following := _awaited(baton, chain[-1])) is not None:
            chain.append(following)
            if following in chain[:-1]:
                return chain[chain.index(following) :]
        chains.append(chain)
    return min(chains, key=len)


def _sentence(baton, chain: list[int]) -> str:
    waiting = [rank for rank in chain if rank not in baton.ended]
    circle = len(chain) > 1 and chain[0] == chain[-1]
    if circle:
        waiting.pop()
    told = f"rank {chain[0]} " + ", which ".join(_waits(baton, rank) for rank in waiting[:SHOWN])
    if len(waiting) > SHOWN:
        return f"{told}, and so on" + (f", round to {chain[-1]}" if circle else "")
    if len(chain) == 2 and circle:
        return f"{told}, itself"
    return f"{told}, which has ended" if chain[-1] in baton.ended and not told.endswith("ended") else told


def _pending(baton, rank: int) -> Operation:
    return next(one for one in baton.waiting[rank] if one.done is None)


def _awaited(baton, rank: int) -> int | None:
    """The rank that `rank` waits for; None when nobody is left who could come."""
    operation = _pending(baton, rank)
    if operation.kind == BARRIER:
        candidates = [other for other in range(baton.size) if other not in baton.in_barrier()]
    elif operation.peer is ANY:
        candidates = [other for other in range(baton.size) if other != rank]
    else:
        return operation.peer
    return min(candidates, key=lambda other: (other in baton.ended, other), default=None)


def _waits_for_both(baton, rank: int) -> str:
    """As `_waits`; of a Sendrecv with both halves open, both, and to whom the one sends from whom it expects."""
    receive = next((one for one in baton.waiting[rank] if one.done is None and one.kind == RECV), None)
    if receive is None or receive is _pending(baton, rank):
        return _waits(baton, rank)
    tag, source = _tag(baton, receive), receive.peer
    if source is ANY:
        return f"{_waits(baton, rank)} and for a message{tag} from any rank"
    return f"{_waits(baton, rank)} and for a message from {source}{tag or _instead(baton, rank, source)}"


def _instead(baton, rank: int, source: int) -> str:
    """What `source` does while `rank` waits for its message."""
    if source in baton.ended:
        return " (which has ended)"
    dests = [str(send.peer) for send in baton.mailbox.sends if send.rank == source]
    if str(rank) in dests:
        return ""
    return f" (which sends to {' and '.join(dests)})" if dests else " (which sends nothing)"


def _waits(baton, rank: int) -> str:
    operation = _pending(baton, rank)
    if operation.kind == BARRIER:
        return f"waits in a barrier for {_awaited(baton, rank)}"
    tag = _tag(baton, operation)
    if operation.kind == SEND:
        return f"waits to send to {operation.peer}{tag}"
    if operation.peer is not ANY:
        return f"waits for a message from {operation.peer}{tag}"
    awaited = _awaited(baton, rank)
    if awaited is None:
        return f"waits for a message{tag}, but there is no other rank"
    if awaited in baton.ended:
        return f"waits for a message{tag} from any rank, but all others have ended"
    return f"waits for a message{tag} from any rank, such as {awaited}"


def _tag(baton, operation: Operation) -> str:
    """' (tag 4; one with tag 3 is there)', where tags could be what keeps a send and a receive apart."""
    sends, receives = baton.mailbox.sends, baton.mailbox.receives
    if operation.tag is ANY or len({one.tag for one in [*sends, *receives]} - {ANY}) < 2:
        return ""
    there = [send.tag for send in sends if send.peer == operation.rank and operation.peer in (ANY, send.rank)]
    other = f"; one with tag {there[0]} is there" if there and operation.kind != SEND else ""
    return f" (tag {operation.tag}{other})"
