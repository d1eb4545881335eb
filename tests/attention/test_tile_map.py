"""Test the tiles that a mask needs."""

from labs_helpers.attention.tile_map import MASKED, SKIPPED, WHOLE, tile_states, visible


def test_the_diagonal_starts_from_the_bottom_right():
    assert visible(1, 4).tolist() == [[True] * 4]
    assert visible(3, 2).tolist() == [[False, False], [True, False], [True, True]]
    assert visible(2, 3).tolist() == [[True, True, False], [True, True, True]]
    assert visible(3, 3, window=2).tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    assert visible(2, 3, causal=False).all()


def test_a_tile_is_whole_masked_or_skipped():
    assert tile_states(visible(4, 4), 2, 2).tolist() == [[MASKED, SKIPPED], [WHOLE, MASKED]]
    assert tile_states(visible(3, 3, causal=False), 2, 2).tolist() == [[WHOLE, MASKED]] * 2  # key 3 does not exist
    assert tile_states(visible(6, 6, window=2), 2, 2)[2].tolist() == [SKIPPED, MASKED, MASKED]
