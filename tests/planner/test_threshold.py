"""Compare the closed form of the tokens per rank that hide messages with times added up piece by piece."""

import pytest

from labs_helpers.planner.threshold import tokens_to_hide

PEAK, BUSBW = 989e12, 349e9


def test_gradients_and_gathers_hide_from_the_same_number_of_tokens():
    gradients = tokens_to_hide(2, 4, 0.5 * PEAK, BUSBW, all_reduce=True)
    forward, backward = tokens_to_hide(2, 2, 0.5 * PEAK, BUSBW), tokens_to_hide(2 + 2, 4, 0.5 * PEAK, BUSBW)
    assert gradients == pytest.approx(forward) == pytest.approx(backward) == pytest.approx(0.5 * PEAK / BUSBW)


@pytest.mark.parametrize("ranks", [2, 8])
def test_at_the_threshold_both_take_as_long(ranks):
    tokens = tokens_to_hide(2, 2, 0.4 * PEAK, BUSBW, ranks)
    gather = 2 * 7e9 * (ranks - 1) / ranks / BUSBW
    assert 2 * 7e9 * tokens / (0.4 * PEAK) == pytest.approx(gather)


def test_float32_gradients_take_more_tokens_and_one_rank_none():
    assert tokens_to_hide(2 + 4, 4, PEAK, BUSBW) == pytest.approx(1.5 * tokens_to_hide(2, 2, PEAK, BUSBW))
    assert tokens_to_hide(2, 2, PEAK, BUSBW, 1) == 0
    with pytest.raises(ValueError, match="positive"):
        tokens_to_hide(2, 2, PEAK, 0)
