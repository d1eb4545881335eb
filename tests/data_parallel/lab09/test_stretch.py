"""Test lab 09's stretch: schedules of gathers run in the order of issue, and wrong ones are rejected with a message."""

import pytest

from labs_helpers.data_parallel.lab09.stretch import draw_schedules, just_in_time, one_ahead, play

TIMES = {"forward": 1.0, "backward": 2.0, "gather": 0.5, "reduce": 0.5}


def test_just_in_time_waits_for_everything_and_one_ahead_for_the_ends_alone():
    slow, fast = play(just_in_time(4), 4, TIMES, 1), play(one_ahead(4), 4, TIMES, 2)
    # The reduce of a block holds the link while the next gather waits behind it.
    assert slow.most == 1 and slow.end == pytest.approx(4 * 1.5 + 4 * 3.0)
    assert fast.most == 2 and fast.end == pytest.approx(0.5 + 4 * 3.0 + 0.5)


@pytest.mark.parametrize(
    "entries, said",
    [
        ([("forward", 0)], "have not been gathered"),
        ([("gather", 0), ("gather", 1), ("gather", 2)], "2 others are"),
        ([("gather", 0), ("gather", 0)], "already whole"),
        ([("free", 0)], "not whole"),
        ([("gather", 0), ("reduce", 0)], "do not exist yet"),
        ([("gather", 0), ("forward", 0), ("backward", 0)], "run every block forward once"),
        ([(what, b) for what, b in one_ahead(3) if what != "reduce"], "exactly once"),
        ([("fetch", 0)], "is not one of"),
    ],
)
def test_what_cannot_be_is_refused(entries, said):
    with pytest.raises(ValueError, match=said):
        play(entries, 3, TIMES, 2)


def test_yours_stands_beside_ours():
    ours, both = (draw_schedules(own, 4, 1.0, 0.5, 2) for own in (lambda blocks: None, one_ahead))
    assert "yours" not in ours.axes[0].get_title("left") and "yours" in both.axes[0].get_title("left")
