"""What a mask asks for and what a kernel visits, tile by tile."""

import numpy as np
import pytest
import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.tile_map import MASKED, SKIPPED, WHOLE, tile_states, visible, visits, visits_elsewhere

SIZES = {"BLOCK_M": 32, "BLOCK_N": 16}


def operands(Lq, Lk):
    return [torch.zeros(1, 2, L, 16) for L in (Lq, Lk, Lk)]


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


@pytest.mark.parametrize(("Lq", "Lk"), [(70, 70), (33, 80), (80, 33), (1, 50)])
def test_causal_attention_visits_each_tile_that_is_seen_once_and_no_other(Lq, Lk):
    counted = visits(exercises.causal_attention, *operands(Lq, Lk), 0.25, **SIZES)
    needed = tile_states(visible(Lq, Lk), SIZES["BLOCK_M"], SIZES["BLOCK_N"]) != SKIPPED
    assert np.array_equal(counted, np.repeat(needed, SIZES["BLOCK_N"], axis=1)[:, :Lk])


def test_another_process_counts_the_same():
    tensors = operands(64, 40)
    here = visits(exercises.causal_attention, *tensors, 0.25, **SIZES)
    assert np.array_equal(visits_elsewhere(exercises.causal_attention, *tensors, 0.25, **SIZES), here)
