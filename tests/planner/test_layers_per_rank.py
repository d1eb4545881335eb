"""Check how layers are divided among pipeline ranks, and the formulas that the planner takes from the pipelines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labs_helpers.pipeline.formulas import in_flight, schedule_length
from labs_helpers.planner.layers_per_rank import cut


def test_the_first_rank_keeps_what_the_paper_says():
    assert in_flight(64, 8) == 8 and in_flight(4, 8) == 4 and in_flight(64, 8, rank=7) == 1
    assert in_flight(64, 8, 4) == pytest.approx(8 * (1 + 7 / (8 * 4)))
    assert schedule_length(64, 8, 4) == 64 + 7 / 4


@given(layers=st.integers(1, 130), p=st.integers(1, 40), v=st.integers(1, 6))
def test_layers_are_all_there_and_chunks_cost_the_same(layers, p, v):
    try:
        found = cut(layers, p, v)
    except ValueError as error:
        assert layers % (p * v) and (p == 1 or (layers + 2) % (p * v))
        assert str(layers) in str(error)
        return
    assert len(found) == p and sum(found) == layers and min(found) >= 0
    whole = found if layers % (p * v) == 0 else [found[0] + 1, *found[1:-1], found[-1] + 1]
    assert len(set(whole)) == 1 and whole[0] % v == 0


def test_llama_3_has_a_layer_less_at_both_ends():
    assert cut(126, 16, 8) == [7, *[8] * 14, 7]
    assert cut(80, 8, 2) == [10] * 8


@pytest.mark.parametrize("call, message", [
    (lambda: schedule_length(0, 2), "micro_batches 0"), (lambda: schedule_length(6, 4, 2), "pp 4 does not divide 6"),
    (lambda: cut(80, 7), "pp 7 divides neither 80 layers nor 82"), (lambda: cut(8, 4, 3), "pp 4 × 3 chunks"),
])  # fmt: skip
def test_impossible_pipelines_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
