"""Test that the figures of lab 04 show their data."""

import numpy as np
import pytest
import torch

from labs_helpers.attention.lab04 import exercises, pictures
from labs_helpers.attention.lab04.time_here import time_here
from labs_helpers.attention.tile_map import visible
from labs_helpers.course.prediction import Prediction
from labs_helpers.course.visits import visits
from labs_helpers.measure.machine import this_machine

LENGTHS = [1024, 4096, 16384]
COSTS = [exercises.attention_costs(1, 32, L, 128, 2, 128) for L in LENGTHS]


def texts(fig) -> str:
    fig.draw_without_rendering()
    return "\n".join(text.get_text() for ax in fig.axes for text in ax.texts) + "".join(
        ax.get_title("left") for ax in fig.axes
    )


def test_costs_are_drawn_as_they_are_given():
    fig = pictures.draw_costs(LENGTHS, COSTS, 141e9)
    left, right = fig.axes
    for ax, plain, tiled in ((left, 0, 2), (right, 1, 3)):
        drawn = {line.get_label(): list(line.get_ydata()) for line in ax.get_lines()}
        assert drawn["plain"] == [cost[plain] for cost in COSTS]
        assert drawn["tiled"] == [cost[tiled] for cost in COSTS]
    assert "141 GB" in texts(fig) and "prediction" not in texts(fig)


@pytest.mark.parametrize(("value", "drawn"), [(None, False), (-5, False), (30000, True)])
def test_a_prediction_is_drawn_where_there_is_one(value, drawn):
    fig = pictures.draw_costs(LENGTHS, COSTS, 141e9, Prediction("length", value))
    assert ("your prediction" in texts(fig)) == drawn


def test_the_running_sum_ends_at_the_whole_rows():
    row = np.array([0.0, 1.0, 0.5, -1.0, 3.0, 2.0])
    above, below = pictures.draw_running(row, 2).axes
    assert list(above.get_lines()[1].get_ydata()) == [1, 1, 3, 3]
    assert below.get_lines()[0].get_ydata()[-1] == pytest.approx(np.exp(row - 3).sum())
    assert len([line for line in above.get_lines() if line.get_linestyle() == ":"]) == 2  # it grows in blocks 0 and 2


def test_the_tile_map_counts_and_names_what_is_computed_for_nothing():
    q = torch.zeros(1, 1, 64, 16)
    counted = visits(exercises.causal_attention, q, q.clone(), q.clone(), 0.25, BLOCK_M=16, BLOCK_N=16)
    seen = visible(64, 64)
    fig = pictures.draw_tile_map({"causal": (counted, seen)}, 16, 16)
    assert "10 of 16 tiles" in texts(fig)
    legend = [text.get_text() for text in fig.legends[0].get_texts()]
    assert legend == ["skipped", "computed (counted)", "on the diagonal (masked)"]
    everything = pictures.draw_tile_map({"all": (np.ones_like(counted), seen)}, 16, 16)
    assert "computed for nothing" in [text.get_text() for text in everything.legends[0].get_texts()]


@pytest.mark.skipif(this_machine().device == "cuda", reason="a GPU times the kernel too")
def test_on_a_cpu_pytorch_alone_is_timed(capsys):
    time_here(exercises.tile_attention)
    printed = capsys.readouterr().out
    assert "PyTorch only" in printed and printed.count("plain, three kernels") == 2 and "tiles" not in printed
    assert "4.194 MB extra" in printed  # S and P of 8 heads at 256 tokens in float32: 2 · 8 · 256² · 4
