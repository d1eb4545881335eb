"""Compare the formula for equal traffic of ZeRO-3 and tensor parallelism with a search and with counted traffic."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.volume import bytes_sent, step_volume
from labs_helpers.planner.zero3_against_tp import compare, crossing, table
from labs_helpers.tensor_parallel import traffic
from labs_helpers.transformer import SIZES

CALM = settings(derandomize=True, deadline=None, max_examples=40)
MODEL = Model.of(SIZES["1b"])


@CALM
@given(ranks=st.sampled_from([2, 4, 8, 16]), size=st.sampled_from([1e9, 7e9, 70e9]))
def test_at_the_crossing_both_send_as_much_and_it_is_the_same_for_all_ranks(ranks, size):
    model = Model.of(size)
    at = crossing(model, ranks)
    below, beyond = (compare(model, ranks, 1, int(factor * at)) for factor in (0.99, 1.01))
    assert below.fewer_bytes == "tensor parallelism" and beyond.fewer_bytes == "ZeRO-3"
    assert at == pytest.approx(crossing(model, 2), rel=1e-6)
    assert 4 < at / model.shape.width < 6  # 4.5, and the vocabulary's part


def test_the_rule_of_4_and_a_half_widths():
    """3 · 2 Ψ = (8 layers + 4) · T · width · 2, with Ψ = 12 layers · width²."""
    model = Model.of(175e9)
    layers, width = model.shape.layers, model.shape.width
    assert crossing(model, 8) == pytest.approx(3 * model.parameters / ((8 * layers + 4) * width), rel=0.01)
    assert crossing(model, 8) == pytest.approx(4.5 * width, rel=0.02)


def test_bytes_are_those_of_the_two_libraries():
    both = compare(MODEL, 4, 8, 1024)
    assert both.tokens == 8192
    rows = traffic.step_traffic(SIZES["1b"], 8, 1024, 4, itemsize=2)
    assert both.tp_bytes == traffic.bytes_sent(rows, 4)
    assert both.zero3_bytes == bytes_sent(step_volume(MODEL, "ZeRO-3"), {"dp": 4})


@pytest.mark.parametrize("sequences, busiest", [(1, 4), (3, 4 / 3), (4, 1), (8, 1), (9, 4 / 3)])
def test_zero_3_cannot_cut_a_sequence(sequences, busiest):
    both = compare(MODEL, 4, sequences, 1024)
    assert both.zero3_flops / both.tp_flops == pytest.approx(busiest)
    assert both.tp_flops == pytest.approx(sequences * 1024 * MODEL.flops_per_token(1024, True) / 4)


def test_the_table():
    rows = table(MODEL, 4, [1, 8], [1024, 4096], cluster=Cluster.of("H200", 4))
    assert list(rows["tokens"]) == [1024, 4096, 8192, 32768]
    assert list(rows["fewer bytes"]) == ["tensor parallelism"] * 3 + ["ZeRO-3"]
    assert (rows["TP FLOP/byte"].max() / rows["TP FLOP/byte"].min()) < 1.5  # more tokens do not help it
    assert rows["ZeRO-3 FLOP/byte"].iloc[-1] > 8 * rows["ZeRO-3 FLOP/byte"].iloc[0]
    assert rows["ZeRO-3 sends ms"].nunique() == 1 and rows["TP sends ms"].is_monotonic_increasing


def test_one_rank_shares_nothing():
    with pytest.raises(ValueError, match="ranks is 1"):
        compare(MODEL, 1, 1, 1024)
