"""Test that our stretch kernel is correct, and that a student's is compared before the figure draws it."""

import pytest
import torch

from labs_helpers.gemm.lab02 import order_study, stretch
from labs_helpers.measure.machine import this_machine


def test_ours_is_right_and_halves_the_loads_of_a():
    assert stretch._wrong(stretch.gated_matmul) == ""
    n, tile = 64, 4 * 64 * 64
    bytes_of = [
        stretch._bytes(way, *(torch.randn(n, n) for _ in range(3))) for way in (stretch.in_pieces, stretch.gated_matmul)
    ]
    assert bytes_of == [2 * 3 * tile + 5 * tile, 4 * tile]


@pytest.mark.parametrize(
    ("yours", "said"),
    [
        (lambda a, b, g: stretch.in_pieces(a, b, g).t(), "has the shape"),
        (lambda a, b, g: a @ b, "elements are wrong"),
        (lambda a, b, g: a @ g.missing, "AttributeError"),
    ],
    ids=["shape", "values", "an error"],
)
def test_a_wrong_one_is_said_to_be(yours, said):
    assert said in stretch._wrong(yours)


def test_the_study_of_orders_needs_a_gpu():
    if this_machine().device == "cuda":
        pytest.skip("there is one")
    with pytest.raises(SystemExit, match="needs a GPU"):
        order_study.main([])


def test_the_record_says_what_the_lab_says():
    frame = order_study.load()
    for _, row in frame[frame["kind"] == "start"].iterrows():
        assert row["correlation_first_axis"] > 0.5 > row["correlation_second_axis"]
    counted = frame[(frame["kind"] == "counters") & (frame["M"] == 8192)].set_index("name")["dram_bytes"]
    assert counted["matmul_add_relu, 64×64×32"] > 3 * counted["portable kernel, 64×64×32, GROUP_M = 32"]
