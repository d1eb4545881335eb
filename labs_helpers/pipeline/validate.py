"""Find what is wrong with a schedule: the first broken dependency, messages that do not match, or a deadlock.

`check` walks through the ranks' lists as the executor would: a send never waits, a receive is started where it stands,
and a computation waits for the results that it uses. Messages between two ranks arrive in the order of the sends.
"""

from __future__ import annotations

from collections import Counter

from labs_helpers.pipeline.messages import message_for, received_by
from labs_helpers.pipeline.schedule import (
    BACKWARD,
    COMPUTE,
    FORWARD,
    FREE,
    INPUT,
    KINDS,
    SENDS,
    WEIGHT,
    Action,
    Schedule,
    needs,
)


class InvalidSchedule(ValueError):
    """Raised for a schedule that cannot run, or whose result would be wrong. The message names the first fault."""


def check(schedule: Schedule) -> None:
    """Raise InvalidSchedule unless every rank can run its list, each pass happens once, and nothing waits forever.

    The schedule has its messages (`messages.complete`).
    """
    for test in (_check_actions, _check_passes, _check_lists, _check_channels, _check_progress):
        test(schedule)


def _check_actions(schedule: Schedule) -> None:
    for rank, order in enumerate(schedule.orders):
        for action in order:
            kind, stage, micro = action
            if kind not in KINDS:
                raise InvalidSchedule(f"rank {rank}: {kind!r} is no kind of action; the kinds are {', '.join(KINDS)}")
            if not 0 <= stage < schedule.stages or schedule.rank_of[stage] != rank:
                held = ", ".join(map(str, schedule.held_by(rank)))
                raise InvalidSchedule(f"rank {rank}: {action}, but the rank holds stage {held}")
            if not 0 <= micro < schedule.micro_batches:
                raise InvalidSchedule(f"rank {rank}: {action}, but there are {schedule.micro_batches} micro-batches")
        if twice := [action for action, times in Counter(order).items() if times > 1]:
            raise InvalidSchedule(f"rank {rank}: {twice[0]} is there {Counter(order)[twice[0]]} times")


def _check_passes(schedule: Schedule) -> None:
    """Every stage runs each micro-batch once: F, with B or with I and W, or F alone in a schedule without training.

    A schedule splits all of its backward passes or none, so that each stage knows which one it waits for.
    """
    there = {action for order in schedule.orders for action in order if action.kind in COMPUTE}
    backward = {INPUT, WEIGHT} if schedule.splits_backward else {BACKWARD}
    wanted = {FORWARD} | (backward if schedule.trains else set())
    for stage, rank in enumerate(schedule.rank_of):
        for micro in range(schedule.micro_batches):
            has = {kind for kind in COMPUTE if Action(kind, stage, micro) in there}
            if BACKWARD in has and schedule.splits_backward:
                raise InvalidSchedule(f"rank {rank}: B{micro} of stage {stage}, but other backward passes are I and W")
            if missing := [kind for kind in COMPUTE if kind in wanted - has]:
                raise InvalidSchedule(f"rank {rank}: {Action(missing[0], stage, micro)} is missing")


def _check_lists(schedule: Schedule) -> None:
    """Within each list: a result exists before it is used, sent or freed, and nothing uses a stash after its end."""
    for rank, order in enumerate(schedule.orders):
        done: set[Action] = set()
        for action in order:
            kind, stage, micro = action
            forward, freed = Action(FORWARD, stage, micro), Action(FREE, stage, micro)
            before = {
                BACKWARD: forward, INPUT: forward, FREE: forward, "send output": forward,
                WEIGHT: Action(INPUT, stage, micro),
            }.get(kind)  # fmt: skip
            if before is not None and before not in done:
                raise InvalidSchedule(f"rank {rank}: {action} comes before {before}")
            if kind == "send gradient" and not done & {Action(BACKWARD, stage, micro), Action(INPUT, stage, micro)}:
                raise InvalidSchedule(f"rank {rank}: {action} comes before the backward pass that computes it")
            if kind in (BACKWARD, INPUT, WEIGHT) and freed in done:
                raise InvalidSchedule(f"rank {rank}: {action} needs the stash of F{micro}, which was freed before")
            if (needed := message_for(schedule, action)) is not None and needed not in done:
                where = "comes later" if needed in order else "is missing"
                raise InvalidSchedule(f"rank {rank}: {action} needs a message from another rank; {needed} {where}")
            done.add(action)
        unfreed = [a for a in order if a.kind == FORWARD and Action(FREE, a.stage, a.micro) not in done]
        if unfreed:
            raise InvalidSchedule(f"rank {rank}: the stash of {unfreed[0]} is never freed")


def channels(schedule: Schedule) -> dict[tuple[int, int], tuple[list[Action], list[Action]]]:
    """Return, by (sender, receiver), the messages in the order of the sends and in the order of the receives."""
    found: dict[tuple[int, int], tuple[list[Action], list[Action]]] = {}
    for rank, order in enumerate(schedule.orders):
        for action in order:
            if (received := received_by(action)) is not None:
                found.setdefault((rank, schedule.rank_of[received.stage]), ([], []))[0].append(received)
            elif action.kind in SENDS.values():
                source = schedule.rank_of[action.stage + (-1 if action.kind == "receive input" else 1)]
                found.setdefault((source, rank), ([], []))[1].append(action)
    return found


def _check_channels(schedule: Schedule) -> None:
    for (sender, receiver), (sent, received) in sorted(channels(schedule).items()):
        if missing := sorted(set(received) - set(sent), key=received.index):
            raise InvalidSchedule(f"rank {receiver}: {missing[0]} waits forever: rank {sender} never sends it")
        if missing := sorted(set(sent) - set(received), key=sent.index):
            raise InvalidSchedule(f"rank {receiver}: {missing[0]} is missing, which rank {sender} sends")
        for place, (one, other) in enumerate(zip(sent, received, strict=True)):
            if one != other:
                raise InvalidSchedule(
                    f"message {place} from rank {sender} to rank {receiver}: rank {sender} sends the one for {one}, "
                    f"rank {receiver} expects the one for {other}; both have to use one order"
                )


def _check_progress(schedule: Schedule) -> None:
    at, done = [0] * schedule.ranks, set[Action]()
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(schedule.orders):
            while at[rank] < len(order) and not _missing(schedule, order[at[rank]], done):
                done.add(order[at[rank]])
                at[rank] += 1
                moved = True
    stuck = {rank: order[at[rank]] for rank, order in enumerate(schedule.orders) if at[rank] < len(order)}
    if stuck:
        waits = []
        for rank, action in stuck.items():
            (needed, *_) = _missing(schedule, action, done)
            waits.append(f"rank {rank}, at {action}, waits for {needed} on rank {schedule.rank_of[needed.stage]}")
        raise InvalidSchedule(f"deadlock: {'; '.join(waits)}")


def _missing(schedule: Schedule, action: Action, done: set[Action]) -> list[Action]:
    """Return the results that a computation uses and that do not exist yet."""
    if action.kind not in COMPUTE:
        return []
    wanted = needs(action, schedule.stages, schedule.splits_backward)
    return [one for one in wanted if one not in done]


def peak_stashes(schedule: Schedule) -> list[int]:
    """Return, by rank of a training schedule, the most stashes that it holds at a time: (stage, micro-batch) pairs from
    F to the last backward action of the pair, B or W. A stage's stash is what F keeps for the backward pass."""
    return [max(counts, default=0) for counts in map(stash_counts, schedule.computations().orders)]


def stash_counts(order: tuple[Action, ...]) -> list[int]:
    """Return the stashes that a rank holds after each of its computations; during B or W it still holds that one."""
    counts, held = [], 0
    for action in order:
        held += action.kind == FORWARD
        counts.append(held)
        held -= action.kind in (BACKWARD, WEIGHT)
    return counts
