"""Batch in flight with one mistake each, as answers to exercise 6 of lab 13 do."""

from __future__ import annotations

from collections.abc import Callable


def stepped(
    running: list,
    waiting: list,
    slots: int,
    capacity: int,
    static: bool = False,
    *,
    leaves: Callable = lambda left: left <= 0,
    closed: Callable = lambda static, running: static and running,  # nobody may join
    free: Callable = lambda running, slots: len(running) < slots,
    room: Callable = lambda used, asked, capacity: used + asked <= capacity,
    counted: Callable = lambda kept, before: kept,  # whose positions are reserved
    grows: bool = True,  # who joins reserves positions in this step
    overtaking: bool = False,
    newest: bool = False,  # the youngest joins first
    front: bool = False,
    most: float = float("inf"),  # requests that join per step
    joins_late: bool = False,  # a request that joins generates from the next step on
    before: bool = False,  # requests leave at the end of the step
    generated: int = 1,
    dropped: bool = False,  # a request that joins is also still waiting
) -> tuple[list, list]:
    """Return the right answer; other settings than the defaults make mistakes."""
    kept = list(running) if before else [request for request in running if not leaves(request[2])]
    queue, joined = list(waiting), []
    used = sum(positions for _, positions, _ in counted(kept, running))
    if not closed(static, kept):
        place = 0
        while place < len(queue) and free(kept + joined, slots) and len(joined) < most:
            at = len(queue) - 1 if newest else place
            if room(used, queue[at][1], capacity):
                used += queue[at][1] if grows else 0
                joined.append(queue.pop(at))
            elif overtaking:
                place += 1
            else:
                break
    together = joined + kept if front else kept + joined
    late = {name for name, *_ in joined} if joins_late else set()
    after = [(name, positions, left if name in late else left - generated) for name, positions, left in together]
    if before:
        after = [request for request in after if not leaves(request[2])]
    return after, list(waiting) if dropped else queue


def _with(**settings) -> Callable:
    return lambda *given: stepped(*given, **settings)


MISTAKES = [
    ("requests that have nothing left stay, and keep their slot", _with(leaves=lambda left: False)),
    ("a request with one token left leaves before it has generated it", _with(leaves=lambda left: left <= 1)),
    ("a request leaves in the step of its last token; it stays in `running` with 0 left until the next step",
     _with(before=True)),
    ("static batching lets requests join while others run", _with(closed=lambda static, running: False)),
    ("in-flight batching does not wait until nobody runs", _with(closed=lambda static, running: bool(running))),
    ("static: nobody is there any more once the last request has left, so the next batch joins in this step",
     lambda running, *given: stepped(running, *given, closed=lambda static, kept: static and running)),
    ("one request too many runs: at most `slots`", _with(free=lambda running, slots: len(running) <= slots)),
    ("`slots` is not looked at", _with(free=lambda running, slots: True)),
    ("the slots are compared with the requests of the step before; compare them with those who stay and those who join",
     lambda running, *given: stepped(running, *given, free=lambda _, slots: len(running) < slots)),
    ("the last slot stays empty: `slots` requests may run",
     _with(free=lambda running, slots: len(running) < slots - 1)),
    ("`capacity` is not looked at", _with(room=lambda used, asked, capacity: True)),
    ("the whole capacity may be reserved: ≤, not <",
     _with(room=lambda used, asked, capacity: used + asked < capacity)),
    ("only what the new request reserves is compared with the capacity: add those that run",
     _with(room=lambda used, asked, capacity: asked <= capacity)),
    ("a request that leaves still counts in the reserved positions", _with(counted=lambda kept, before: before)),
    ("those who join in this step reserve positions, too: add them before the next one joins", _with(grows=False)),
    ("a request overtakes an older one that does not fit: with a steady flow of small requests, that one starves",
     _with(overtaking=True)),
    ("the youngest waiting request joins first: it is the oldest one's turn", _with(newest=True)),
    ("those who join come last in `running`, which is in order of age", _with(front=True)),
    ("only one request joins per step: as many as fit", _with(most=1)),
    ("a request that joins generates a token in this step, too", _with(joins_late=True)),
    ("every running request generates a token: left decreases by 1", _with(generated=0)),
    ("requests that joined are still in `waiting`", _with(dropped=True)),
]  # fmt: skip
