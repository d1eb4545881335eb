"""Test the order of tiles, and the simulated cache whose misses depend on it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.gemm.lab02 import exercises
from labs_helpers.gemm.lab02.tile_cache import in_groups, tile_misses, wave_rows
from labs_helpers.measure.machine import this_machine


@settings(max_examples=30)
@given(tiles_m=st.integers(1, 9), tiles_n=st.integers(1, 9), group=st.integers(1, 12))
def test_every_tile_once_group_after_group(tiles_m, tiles_n, group):
    order = [tuple(t) for t in exercises.tile_order(tiles_m, tiles_n, group, device=this_machine().device).tolist()]
    assert sorted(order) == [(i, j) for i in range(tiles_m) for j in range(tiles_n)]
    assert [i // group for i, _ in order] == sorted(i // group for i, _ in order)


tiles = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=40)


@settings(max_examples=60)
@given(order=tiles, capacity=st.integers(1, 14), wave=st.integers(1, 5))
def test_misses_lie_between_each_strip_once_and_every_use(order, capacity, wave):
    strips = {("A", i) for i, _ in order} | {("B", j) for _, j in order}
    misses = tile_misses(order, capacity, wave)
    assert len(strips) <= misses <= 2 * len(order)
    assert tile_misses(order, len(strips) + 1, wave) == len(strips)


@settings(max_examples=40)
@given(order=tiles, capacity=st.integers(1, 14))
def test_least_recently_used_against_a_list(order, capacity):
    """Compare with an independent cache: a list with the most recent strip last."""
    held, misses = [], 0
    for i, j in order:
        for strip in (("A", i), ("B", j)):
            misses += strip not in held
            held = ([s for s in held if s != strip] + [strip])[-capacity:]
    assert tile_misses(order, capacity) == misses


@pytest.mark.parametrize(("capacity", "wave"), [(0, 1), (1, 0), (-1, 1)])
def test_no_capacity_is_an_error(capacity, wave):
    with pytest.raises(ValueError, match="at least 1"):
        tile_misses([(0, 0)], capacity, wave)


@pytest.mark.parametrize("case", [(8, 4, 5), (3, 5, 2), (1, 6, 4)])
def test_the_drawn_order_is_the_exercises(case):
    assert in_groups(*case) == [tuple(tile) for tile in exercises.tile_order(*case).tolist()]


def test_rows_of_a_wave():
    """A wave of 132 tiles covers whole rows of tiles if a row is shorter than the wave, else g × 132/g tiles."""
    assert [wave_rows(group, 128, 64, 132, 128, 256) for group in (1, 2)] == [16648, 16648]
    assert [wave_rows(group, 128, 64, 132, 128, 256) for group in (8, 16)] == [
        8 * 128 + 132 / 8 * 256,
        16 * 128 + 132 / 16 * 256,
    ]
