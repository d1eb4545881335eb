"""Which program loads which row: of attention's keys, those tiles that one of its queries sees, each once."""

import numpy as np
import pytest
import torch

from labs_helpers.attention.lab04 import exercises
from labs_helpers.attention.tile_map import SKIPPED, tile_states, visible
from labs_helpers.course.visits import visits

SIZES = {"BLOCK_M": 32, "BLOCK_N": 16}


def operands(Lq, Lk):
    return [torch.zeros(1, 2, L, 16) for L in (Lq, Lk, Lk)]


@pytest.mark.parametrize(("Lq", "Lk"), [(70, 70), (33, 80), (80, 33), (1, 50)])
def test_causal_attention_visits_each_tile_that_is_seen_once_and_no_other(Lq, Lk):
    counted = visits(exercises.causal_attention, *operands(Lq, Lk), 0.25, **SIZES)
    needed = tile_states(visible(Lq, Lk), SIZES["BLOCK_M"], SIZES["BLOCK_N"]) != SKIPPED
    assert np.array_equal(counted, np.repeat(needed, SIZES["BLOCK_N"], axis=1)[:, :Lk])


def test_another_process_counts_the_same():
    tensors = operands(64, 40)
    here = visits(exercises.causal_attention, *tensors, 0.25, **SIZES)
    assert np.array_equal(visits(exercises.causal_attention, *tensors, 0.25, **SIZES), here)
