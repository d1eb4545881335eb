"""The simulator's timelines keep every dependency, and its times are those of longest paths."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.pipeline.schedule import Action, Schedule, needs
from labs_helpers.pipeline.schedules import gpipe, one_f_one_b
from labs_helpers.pipeline.simulate import Bar, Timeline, Times, simulate
from labs_helpers.pipeline.validate import InvalidSchedule, peak_stashes
from tests.pipeline.random_schedules import random_schedules

time = st.floats(0.1, 2.0)


@settings(max_examples=60)
@given(random_schedules(), time, time, time, st.floats(0, 1.0))
def test_a_computation_starts_as_soon_as_its_rank_and_its_inputs_are_ready(schedule, forward, input, weight, transfer):
    times = Times(forward, input, weight, transfer=transfer)
    timeline = simulate(schedule, times)
    at = {bar.action: bar for bar in timeline.bars}
    before = {order[k]: order[k - 1] for order in schedule.orders for k in range(1, len(order))}
    for action, bar in at.items():
        wanted = needs(action, schedule.stages, schedule.splits_backward)
        away = [one for one in wanted if schedule.rank_of[one.stage] != bar.rank]
        earliest = max(
            [at[before[action]].stop if action in before else 0.0]
            + [at[one].stop + (transfer if one in away else 0.0) for one in wanted]
        )
        assert bar.stop - bar.start == pytest.approx(times.of(action))
        # A message may also have waited for the ones that its link carried before.
        assert bar.start >= earliest - 1e-9
        if transfer == 0 or not away:
            assert bar.start == pytest.approx(earliest)


@given(random_schedules())
def test_the_curve_of_stashes_has_the_peak_that_the_validator_counts(schedule):
    timeline = simulate(schedule)
    for rank, peak in enumerate(peak_stashes(schedule)):
        assert max(held for _, held in timeline.stashes(rank)) == peak
        assert timeline.stashes(rank)[-1][1] == 0


def test_transfers_lengthen_the_bubble():
    """GPipe waits for one message per stage boundary, forward and backward, with messages that take less than a
    pass."""
    assert simulate(gpipe(4, 8), Times(transfer=0.25)).seconds == pytest.approx(11 * 3 + 6 * 0.25)


def test_the_slowest_stage_sets_the_pace():
    timeline = simulate(one_f_one_b(3, 20), Times(forward=[1, 2, 1], backward=[2, 4, 2]))
    assert timeline.busy == pytest.approx([60, 120, 60])
    # Rank 1 waits for rank 0's first F and for rank 2's first B, which comes 1 later than its own second F.
    assert timeline.seconds == pytest.approx(1 + 120 + 1 + 2)


def test_an_impossible_schedule_is_refused():
    order = [Action("B", 0, 0), Action("F", 0, 0)]
    with pytest.raises(InvalidSchedule, match="B0 of stage 0 comes before F0"):
        simulate(Schedule.of("mine", [order], 1))


def test_a_measured_timeline_may_begin_at_any_time():
    bars = [Bar(0, Action("F", 0, 0), 10.0, 11.0), Bar(1, Action("F", 1, 0), 11.5, 12.0)]
    timeline = Timeline("measured", 2, bars)
    assert timeline.seconds == 2
    assert timeline.bubble_share == pytest.approx(1 - 1.5 / 4)
