"""The published schedules are valid, and have the bubbles and stashes of their papers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.pipeline import formulas
from labs_helpers.pipeline.messages import complete
from labs_helpers.pipeline.schedule import FORWARD
from labs_helpers.pipeline.schedules import forward_only, gpipe, interleaved, naive, one_f_one_b, zero_bubble
from labs_helpers.pipeline.simulate import Times, simulate
from labs_helpers.pipeline.validate import check, peak_stashes

ranks, micro_batches = st.integers(1, 8), st.integers(1, 17)
some_time = st.floats(0.1, 3.0)


@given(ranks, micro_batches, st.sampled_from([naive, gpipe, one_f_one_b, zero_bubble, forward_only]))
def test_every_schedule_is_valid(p, m, make):
    check(complete(make(p, m)))


@given(ranks, st.integers(1, 4), st.integers(2, 4))
def test_interleaved_schedules_are_valid(p, groups, chunks):
    check(complete(interleaved(p, groups * p, chunks)))
    check(complete(forward_only(p, groups * p, chunks)))


@given(ranks, micro_batches, st.sampled_from([gpipe, one_f_one_b]), some_time, some_time)
def test_bubbles_of_gpipe_and_1f1b(p, m, make, forward, backward):
    """Both wait for p − 1 forward and p − 1 backward passes, whatever these take."""
    timeline = simulate(make(p, m), Times(forward, backward=backward))
    assert timeline.seconds == pytest.approx((m + p - 1) * (forward + backward))
    assert timeline.bubble_share == pytest.approx(formulas.bubble_share(p, m))


@given(ranks, st.integers(1, 4), st.integers(2, 4))
def test_v_chunks_make_the_bubble_v_times_as_small(p, groups, v):
    timeline = simulate(interleaved(p, groups * p, v), Times(1 / v, 1 / v, 1 / v))
    assert timeline.bubble_share == pytest.approx(formulas.bubble_share(p, groups * p, v))


@given(ranks, st.integers(0, 9), some_time, some_time, some_time)
def test_the_wait_of_the_zero_bubble_schedule(p, more, forward, input, weight):
    m = p + more
    timeline = simulate(zero_bubble(p, m), Times(forward, input, weight))
    wait = formulas.zero_bubble_wait(p, forward, input, weight)
    assert timeline.seconds - m * (forward + input + weight) == pytest.approx(wait)


@given(ranks, micro_batches)
def test_stashes(p, m):
    assert peak_stashes(gpipe(p, m)) == [m] * p
    assert peak_stashes(one_f_one_b(p, m)) == [formulas.in_flight(m, p, rank=rank) for rank in range(p)]
    assert peak_stashes(zero_bubble(p, m)) == [min(m, p)] * p


@given(ranks, st.integers(1, 4), st.integers(2, 4))
def test_interleaved_stashes(p, groups, v):
    found = peak_stashes(interleaved(p, groups * p, v))
    assert found == [v * formulas.in_flight(groups * p, p, v, rank) for rank in range(p)]


def test_naive_pipelines_work_one_rank_at_a_time():
    timeline = simulate(naive(4, 3))
    assert timeline.bubble_share == pytest.approx(3 / 4)
    assert peak_stashes(naive(4, 3)) == [1, 1, 1, 1]


def test_micro_batches_that_do_not_form_groups_are_refused():
    with pytest.raises(ValueError, match="6 micro-batches do not form groups of 4 ranks; 4 or 8 would"):
        interleaved(4, 6, 2)
    with pytest.raises(ValueError, match="3 micro-batches do not form groups of 4 ranks; 4 would"):
        interleaved(4, 3, 2)


@pytest.mark.parametrize("arguments", [(0, 4), (4, 0), (2.0, 4), (True, 4)])
def test_sizes_are_positive_integers(arguments):
    with pytest.raises(ValueError, match="not an integer of 1 or more"):
        one_f_one_b(*arguments)


def test_an_evaluation_has_forward_passes_only():
    schedule = forward_only(2, 4, 2)
    assert not schedule.trains
    assert {a.kind for order in schedule.orders for a in order} == {FORWARD}
