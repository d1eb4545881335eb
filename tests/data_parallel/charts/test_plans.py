"""Test the figures of plans: they draw the counted bytes, and no texts overlap or leave the figure."""

from __future__ import annotations

import itertools
from unittest.mock import patch

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from labs_helpers.course.prediction import Prediction
from labs_helpers.data_parallel import charts
from labs_helpers.planner.accounting import GB, states, total
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.plan import plan
from labs_helpers.planner.strategies import Training
from labs_helpers.planner.zero3_against_tp import crossing

SEVEN = plan(Training(Model.of(7e9)), Cluster.of("H100", 8))
SEVENTY = plan(Training(Model.of(70e9), checkpoint=True), Cluster.of("H100", 64))


def texts_of(fig) -> list[str]:
    """Return all text in a figure. AssertionError if two texts overlap, or one leaves the figure."""
    boxes = {}

    def draw(text, renderer, *args, **kwargs):
        if text.get_visible() and text.get_text().strip():
            boxes[text] = Text.get_window_extent(text, renderer)  # an annotation's own includes its arrow

    with patch.object(Text, "draw", draw):
        FigureCanvasAgg(fig).draw()
    for text, box in boxes.items():
        inside = fig.bbox.x0 <= box.x0 and box.x1 <= fig.bbox.x1 and fig.bbox.y0 <= box.y0 and box.y1 <= fig.bbox.y1
        assert inside, f"{text.get_text()!r} leaves the figure"
    for (one, first), (other, second) in itertools.combinations(boxes.items(), 2):
        assert not first.padded(-1).overlaps(second), f"{one.get_text()!r} and {other.get_text()!r} overlap"
    return [text.get_text() for text in boxes]


def lengths(fig) -> dict[str, float]:
    """Return strategy → the end of its bar."""
    (ax,) = fig.axes
    names = [label.get_text() for label in ax.get_yticklabels()]
    return {
        name: max(bar.get_x() + bar.get_width() for bar in ax.patches if round(bar.get_y() + bar.get_height() / 2) == y)
        for y, name in enumerate(names)
    }


@pytest.mark.parametrize("found", [SEVEN, SEVENTY], ids=["7e9", "70e9"])
def test_bars_of_a_plan(found):
    memory = charts.draw_plan_memory(found)
    told = texts_of(memory)
    assert "80 GB" in told and told.count("ZeRO-3") == 1
    assert lengths(memory) == pytest.approx({row.strategy.name: row.memory for row in found.rows})


def test_bars_far_beyond_the_gpu_end_at_the_edge_with_their_number():
    fig = charts.draw_plan_memory(SEVENTY)
    assert fig.axes[0].get_xlim()[1] < 5 * 80e9
    assert "1,124 GB →" in texts_of(fig)


def test_states_are_those_of_the_paper():
    fig = charts.draw_states(7.5e9, 64)
    assert {"120 GB", "31.4 GB", "16.6 GB", "1.88 GB"} <= set(texts_of(fig))
    assert lengths(fig)["ZeRO-2"] == pytest.approx(total(states(7.5e9, "ZeRO-2", 64)))


def test_the_crossing_is_marked_and_a_prediction_too():
    model = Model.of(7e9)
    at = crossing(model, 8)
    fig = charts.draw_crossing(model, 8, Prediction("tokens", None))
    assert f"{at:,.0f} tokens: {at / 4096:.1f} times the width" in texts_of(fig)
    mark = next(line for line in fig.axes[0].get_lines() if line.get_label() == "_crossing")
    assert mark.get_xdata()[0] == at
    with_one = charts.draw_crossing(model, 8, Prediction("tokens", 50_000.0))
    assert "your prediction" in texts_of(with_one)
    assert len(with_one.axes[0].get_lines()) == len(fig.axes[0].get_lines()) + 1


def test_there_has_to_be_something_to_draw():
    with pytest.raises(ValueError, match="nothing to draw"):
        charts.draw_memory({})
    assert charts.draw_memory({"one": states(1e9, "DDP", 1)}, GB).axes
