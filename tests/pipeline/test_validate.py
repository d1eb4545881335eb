"""The validator names the first fault of a schedule, and passes every schedule that can run."""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from labs_helpers.pipeline.messages import complete
from labs_helpers.pipeline.schedule import Action, Schedule
from labs_helpers.pipeline.schedules import interleaved, one_f_one_b, zero_bubble
from labs_helpers.pipeline.validate import InvalidSchedule, check, peak_stashes
from tests.pipeline.random_schedules import random_schedules


def changed(schedule: Schedule, rank: int, change) -> Schedule:
    """Return the schedule with rank's list changed in place by `change`."""
    orders = [list(order) for order in schedule.orders]
    change(orders[rank])
    return Schedule(schedule.name, tuple(map(tuple, orders)), schedule.rank_of, schedule.micro_batches)


def move(action: Action, before: Action):
    def change(order: list[Action]) -> None:
        order.remove(action)
        order.insert(order.index(before), action)

    return change


def swap(one: Action, other: Action):
    def change(order: list[Action]) -> None:
        i, j = order.index(one), order.index(other)
        order[i], order[j] = order[j], order[i]

    return change


F1 = Action("F", 0, 1)
RECEIVE_0, RECEIVE_1 = Action("receive input", 1, 0), Action("receive input", 1, 1)
PLANTED = {
    "a backward pass before its forward pass": (
        0, move(Action("B", 0, 1), before=F1), "rank 0: B1 of stage 0 comes before F1 of stage 0",
    ),
    "a missing receive": (
        1, lambda order: order.remove(RECEIVE_1),
        "rank 1: F1 of stage 1 needs a message from another rank; 'receive input 1' of stage 1 is missing",
    ),
    "a receive after its use": (
        1, lambda order: order.insert(order.index(Action("F", 1, 0)) + 1, order.pop(order.index(RECEIVE_0))),
        "rank 1: F0 of stage 1 needs a message from another rank; 'receive input 0' of stage 1 comes later",
    ),
    "a missing send": (
        0, lambda order: order.remove(Action("send output", 0, 1)),
        "rank 1: 'receive input 1' of stage 1 waits forever: rank 0 never sends it",
    ),
    "a message that nobody receives": (
        1, lambda order: order.remove(Action("send gradient", 1, 1)),
        "rank 0: 'receive gradient 1' of stage 0 waits forever: rank 1 never sends it",
    ),
    "mismatched order between neighbors": (
        0, lambda order: (swap(F1, Action("F", 0, 0))(order),
                          swap(Action("send output", 0, 1), Action("send output", 0, 0))(order)),
        "message 0 from rank 0 to rank 1: rank 0 sends the one for 'receive input 1' of stage 1, rank 1 expects",
    ),
    "a stash freed too early": (
        0, move(Action("free", 0, 1), before=Action("B", 0, 1)),
        "rank 0: B1 of stage 0 needs the stash of F1, which was freed before",
    ),
    "a stash that stays": (
        0, lambda order: order.remove(Action("free", 0, 1)), "rank 0: the stash of F1 of stage 0 is never freed",
    ),
    "a send before its computation": (
        0, move(Action("send output", 0, 1), before=F1), "'send output 1' of stage 0 comes before F1 of stage 0",
    ),
    "a gradient sent before it exists": (
        1, move(Action("send gradient", 1, 1), before=Action("B", 1, 1)), "before the backward pass that computes it",
    ),
    "a missing pass": (1, lambda order: order.remove(Action("B", 1, 1)), "rank 1: B1 of stage 1 is missing"),
    "a pass twice": (0, lambda order: order.append(F1), "rank 0: F1 of stage 0 is there 2 times"),
    "another rank's stage": (0, lambda order: order.append(Action("F", 1, 1)), "but the rank holds stage 0"),
    "a micro-batch too many": (0, lambda order: order.append(Action("F", 0, 3)), "but there are 3 micro-batches"),
    "an unknown action": (0, lambda order: order.append(Action("forward", 0, 0)), "'forward' is no kind of action"),
    "both kinds of backward passes": (
        0, lambda order: order.append(Action("I", 0, 0)),
        "rank 0: B0 of stage 0, but other backward passes are I and W",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_named(fault):
    rank, change, said = PLANTED[fault]
    with pytest.raises(InvalidSchedule, match=re.escape(said)):
        check(changed(complete(one_f_one_b(2, 3)), rank, change))


def test_a_deadlock_says_who_waits_for_whom():
    """Rank 0 wants B0 before it computes F1, and rank 1 wants F1 before it computes B0."""
    first = [Action("F", 0, 0), Action("B", 0, 0), Action("F", 0, 1), Action("B", 0, 1)]
    second = [Action("F", 1, 0), Action("F", 1, 1), Action("B", 1, 0), Action("B", 1, 1)]
    with pytest.raises(InvalidSchedule) as found:
        check(complete(Schedule.of("mine", [first, second], 2)))
    assert str(found.value) == (
        "deadlock: rank 0, at B0 of stage 0, waits for B0 of stage 1 on rank 1; "
        "rank 1, at F1 of stage 1, waits for F1 of stage 0 on rank 0"
    )


def test_a_weight_pass_before_its_input_pass_is_named():
    schedule = complete(zero_bubble(2, 2))
    with pytest.raises(InvalidSchedule, match="W0 of stage 0 comes before I0 of stage 0"):
        check(changed(schedule, 0, move(Action("W", 0, 0), before=Action("I", 0, 0))))


@given(random_schedules())
def test_every_order_that_a_run_could_have_is_valid(schedule):
    check(complete(schedule))
    assert complete(complete(schedule)) == complete(schedule)
    held = [len(schedule.held_by(rank)) for rank in range(schedule.ranks)]
    assert all(n <= h * schedule.micro_batches for n, h in zip(peak_stashes(schedule), held, strict=True))


def test_receives_follow_the_order_of_the_sends():
    """With two chunks, a rank's messages to another one belong to several stages; both sides use one order."""
    check(complete(interleaved(2, 4, 3)))
