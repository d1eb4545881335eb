"""Add the messages to a schedule of computations, and the point at which each stash is freed.

A rank sends a result directly after computing it, and starts to receive directly before it needs the message. Messages
between two ranks arrive in the order in which they were sent, so a receiver takes them in that order: if it needs a
later one first, it receives the earlier ones before.
"""

from __future__ import annotations

from collections import defaultdict, deque

from labs_helpers.pipeline.schedule import (
    BACKWARD,
    FORWARD,
    FREE,
    INPUT,
    RECEIVE_GRADIENT,
    RECEIVE_INPUT,
    SEND_GRADIENT,
    SEND_OUTPUT,
    WEIGHT,
    Action,
    Order,
    Schedule,
)


def complete(schedule: Schedule) -> Schedule:
    """Return the schedule with sends, receives and frees. Actions of these kinds that it has are replaced."""
    schedule = schedule.computations()
    sending = [_with_sends(schedule, order) for order in schedule.orders]
    # Per pair of ranks: the messages that one sends to the other, in the order of the sends.
    under_way: dict[tuple[int, int], deque[Action]] = defaultdict(deque)
    for rank, order in enumerate(sending):
        for action in order:
            if (received := received_by(action)) is not None:
                under_way[rank, schedule.rank_of[received.stage]].append(received)
    orders = tuple(_with_receives(schedule, rank, order, under_way) for rank, order in enumerate(sending))
    return Schedule(schedule.name, orders, schedule.rank_of, schedule.micro_batches)


def received_by(action: Action) -> Action | None:
    """Return the action that receives the message of a send, or None for other actions."""
    if action.kind == SEND_OUTPUT:
        return Action(RECEIVE_INPUT, action.stage + 1, action.micro)
    if action.kind == SEND_GRADIENT:
        return Action(RECEIVE_GRADIENT, action.stage - 1, action.micro)
    return None


def message_for(schedule: Schedule, action: Action) -> Action | None:
    """Return the receive that a computation waits for, or None if it needs no message from another rank."""
    kind, stage, micro = action
    if kind == FORWARD and stage > 0 and schedule.rank_of[stage - 1] != schedule.rank_of[stage]:
        return Action(RECEIVE_INPUT, stage, micro)
    last = schedule.stages - 1
    if kind in (BACKWARD, INPUT) and stage < last and schedule.rank_of[stage + 1] != schedule.rank_of[stage]:
        return Action(RECEIVE_GRADIENT, stage, micro)
    return None


def message_after(schedule: Schedule, action: Action) -> Action | None:
    """Return the send that follows a computation, or None if its result stays on the rank."""
    kind, stage, micro = action
    last = schedule.stages - 1
    if kind == FORWARD and stage < last and schedule.rank_of[stage + 1] != schedule.rank_of[stage]:
        return Action(SEND_OUTPUT, stage, micro)
    if kind in (BACKWARD, INPUT) and stage > 0 and schedule.rank_of[stage - 1] != schedule.rank_of[stage]:
        return Action(SEND_GRADIENT, stage, micro)
    return None


def _with_sends(schedule: Schedule, order: Order) -> list[Action]:
    found = []
    for action in order:
        found.append(action)
        if (send := message_after(schedule, action)) is not None:
            found.append(send)
        if action.kind in (BACKWARD, WEIGHT):
            found.append(Action(FREE, action.stage, action.micro))
        elif not schedule.trains:
            found += _freed_by(schedule, action)
    return found


def _freed_by(schedule: Schedule, forward: Action) -> list[Action]:
    """Return the stashes that a forward pass without training frees: its own, unless the next stage is on the same
    rank and still needs it, and that of the stage before if it was kept for this one."""
    _, stage, micro = forward
    rank_of = schedule.rank_of
    kept = [s for s in (stage - 1, stage) if 0 <= s < schedule.stages - 1 and rank_of[s] == rank_of[s + 1]]
    freed = ([stage - 1] if stage - 1 in kept else []) + ([] if stage in kept else [stage])
    return [Action(FREE, s, micro) for s in freed]


def _with_receives(
    schedule: Schedule, rank: int, order: list[Action], under_way: dict[tuple[int, int], deque[Action]]
) -> Order:
    found: list[Action] = []
    started: set[Action] = set()
    for action in order:
        needed = message_for(schedule, action)
        if needed is not None:
            source = schedule.rank_of[action.stage + (-1 if needed.kind == RECEIVE_INPUT else 1)]
            queue = under_way[source, rank]
            while needed not in started and queue:
                started.add(queue[0])
                found.append(queue.popleft())
        found.append(action)
    return tuple(found)
