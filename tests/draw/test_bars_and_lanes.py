"""Bars and lanes: what they draw is what they are given, from the top down."""

import pytest

from labs_helpers.course.prediction import Prediction
from labs_helpers.draw import figures
from labs_helpers.draw.bars import FLOOR, draw_bars, mark_bar, over_floor, predict_bar
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color


def places(ax):
    """(row, begin, end, color) of each bar."""
    return [
        (round(bar.get_y() + bar.get_height() / 2, 2), bar.get_x(), bar.get_x() + bar.get_width(), bar.get_facecolor())
        for bar in ax.patches
    ]


def test_parts_are_stacked_and_words_stand_at_the_end():
    fig, (ax,) = figures.panels("Bars", [""])
    bars = {"a": {"parameters": 2, "gradients": 1}, "b": {"parameters": 4}}
    longest = draw_bars(ax, bars, {part: part for part in ("parameters", "gradients")}, {"a": "three"}, unit="B")
    assert longest == 4 and [place[:3] for place in places(ax)] == [(0, 0, 2), (0, 2, 3), (1, 0, 4)]
    (words,) = ax.texts
    assert words.get_text() == "three" and words.xy == (3, 0)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["a", "b"] and ax.get_ylim()[0] > ax.get_ylim()[1]


def test_panels_share_rows_and_a_spread_counts_for_the_axis():
    fig, (ax,) = figures.panels("Bars", [""])
    longest = draw_bars(ax, {"b": 2.0}, names=["a", "b"], spread={"b": (1.5, 3.0)}, room=2)
    assert longest == 3 and ax.get_xlim() == (0, 6) and places(ax)[0][0] == 1


def test_a_step_has_a_floor_and_the_rest():
    assert over_floor(2, 5, "exposed") == {FLOOR: 2, "exposed": 3}
    assert over_floor(5, 4, "exposed") == {FLOOR: 4, "exposed": 0}
    assert over_floor(float("nan"), 4, "exposed") == {FLOOR: 0, "exposed": 4}
    assert over_floor(3, 3, FLOOR) == {FLOOR: 3}


def test_marks_and_predictions_stand_on_their_bars():
    fig, ax = figures.new("Bars")
    draw_bars(ax, {"a": 1.0, "b": 2.0})
    mark_bar(ax, 1.5, 1)
    predict_bar(ax, None, 1)
    assert [line.get_xydata().tolist() for line in ax.get_lines()] == [[[1.5, 1]]]
    predict_bar(ax, 3, 0)
    assert ax.texts[-1].get_text() == "your prediction"


def test_lanes_lie_below_each_other_and_long_words_are_cut():
    fig, ax = figures.new("Lanes", width=4)
    compute = [Span(0, 3, color("forward"), "forward"), Span(3, 9, color("backward"), "backward")]
    sent = [Span(8.9, 9, color("communication"), "never fits")]
    draw_lanes(ax, {"rank 0": [compute, sent], "rank 1": [compute]}, {"rank 0": 9.5}, xlabel="ms")
    heights = [
        (path.vertices[:, 1].min(), path.vertices[:, 1].max())
        for drawn in ax.collections
        for path in drawn.get_paths()
        if len(path.vertices) == 5
    ]
    assert heights[0][1] <= heights[2][0] and heights[2][1] < heights[3][0]
    assert {text.get_text() for text in ax.texts} == {"forward", "backward"}
    assert [label.get_text() for label in ax.get_yticklabels()] == ["rank 0", "rank 1"]


def test_titles_are_broken_and_panels_named():
    fig, axes = figures.panels("word " * 40, ["left", "right"], width=6)
    assert "\n" in fig.get_suptitle() and [ax.get_title("left") for ax in axes] == ["left", "right"]
    fig, ax = figures.new("word " * 40, width=6)
    assert "\n" in ax.get_title("left")


def test_the_legend_below_has_patches_lines_and_what_was_drawn():
    fig, (ax,) = figures.panels("Legend", [""])
    figures.legend_below(
        fig, {"ours": "ours", "formula": ("formula", "--"), "hidden": "theirs"}, only={"ours", "formula"}
    )
    assert [text.get_text() for text in fig.legends[0].get_texts()] == ["ours", "formula"]
    ax.plot([1, 2], label="curve")
    figures.legend_below(fig)
    assert [text.get_text() for text in fig.legends[1].get_texts()] == ["curve"]


@pytest.mark.parametrize("x, y, scale, place", [
    (4, Prediction("?", 3.0), 1e-3, (4, 0.003)), (Prediction("?", 8.0), 2, 1.0, (8, 2)),
    (4, Prediction("?", None), 1.0, None), (4, None, 1.0, None),
])  # fmt: skip
def test_a_prediction_is_marked_in_the_axis_s_unit(x, y, scale, place):
    fig, ax = figures.new("Prediction")
    figures.mark_prediction(ax, x, y, scale=scale)
    assert [tuple(line.get_xydata()[0]) for line in ax.get_lines()] == ([pytest.approx(place)] if place else [])


def test_on_a_logarithmic_axis_nothing_is_predicted_at_zero():
    fig, ax = figures.new("Prediction")
    ax.set_yscale("log")
    assert figures.mark_prediction(ax, 1, Prediction("?", 0.0)) is None
