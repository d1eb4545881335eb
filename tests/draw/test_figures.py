import io
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.text import Text

from labs_helpers.draw import figures, labels

ROOT = Path(__file__).resolve().parents[2]


def curves(count=3):
    fig, ax = figures.new("Curves")
    for i in range(count):
        ax.plot([1, 2, 4, 8], [1 + i / 50, 2, 3, 4 + i / 50], label=f"curve {i}")
    return fig, ax


def test_svg_is_written_where_asked_and_the_same_every_time(tmp_path, monkeypatch):
    written = []
    for run in ("first", "second"):
        monkeypatch.setenv("LABS_FIGURES", str(tmp_path / run))
        fig, ax = curves()
        figures.label_lines(ax)
        figures.finish(fig, "same")
        written.append((tmp_path / run / "same.svg").read_bytes())
    assert written[0] == written[1]
    assert written[0].startswith(b"<?xml") and b"dc:date" not in written[0]


def test_nothing_is_written_unless_asked(tmp_path, monkeypatch):
    monkeypatch.delenv("LABS_FIGURES", raising=False)
    monkeypatch.chdir(tmp_path)
    figures.finish(curves()[0], "nowhere")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "a/b", "../up", ".hidden", "two words", "a.svg", "a\n"])
def test_a_name_that_is_no_file_name_is_refused(name):
    with pytest.raises(ValueError, match="a figure's name"):
        figures.finish(curves()[0], name)


def test_png_keeps_the_colours_that_few_pixels_have():
    fig, ax = figures.new("Curves", width=9.5)
    for i, color in enumerate(figures.COLORS.values()):
        ax.fill_between([0, 8], i, i + 1, color=color, alpha=0.1 + 0.1 * (i % 4))  # many shades, and large
        ax.plot([i + 0.5], [i + 0.5], "o", color=color)
    pixels = np.asarray(PIL.Image.open(io.BytesIO(figures.png(fig))).convert("RGB")).reshape(-1, 3).astype(int)
    for name, color in figures.COLORS.items():
        wanted = [int(color[k : k + 2], 16) for k in (1, 3, 5)]
        assert np.abs(pixels - wanted).sum(axis=1).min() <= 12, name


def test_png_is_opaque_light_and_small():
    fig, ax = figures.new("Many curves")
    rng = np.random.default_rng(0)
    for i in range(8):
        ax.plot(rng.random(12).cumsum(), label=f"a curve of a longer name {i}")
    figures.label_lines(ax)
    packed = figures.png(fig)
    image = PIL.Image.open(io.BytesIO(packed))
    assert len(packed) < 60_000
    assert "transparency" not in image.info and image.convert("RGB").getpixel((0, 0)) == rgb(figures.PAPER)


def rgb(color):
    return tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))


def luminance(color):
    """Relative luminance, WCAG 2.2."""
    linear = [c / 12.92 if (c := v / 255) <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for v in rgb(color)]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_text_has_the_contrast_that_wcag_asks_for():
    assert (luminance(figures.PAPER) + 0.05) / (luminance(figures.INK) + 0.05) > 7


def test_curves_differ_in_more_than_colour():
    cycle = list(figures.STYLE["axes.prop_cycle"])
    assert len({style["color"] for style in cycle}) == len({style["marker"] for style in cycle}) == len(cycle) == 8


def test_a_prediction_is_drawn_and_none_draws_nothing():
    fig, ax = curves()
    before = len(ax.get_lines()), len(ax.texts)
    assert figures.mark_prediction(ax, 4, None) is None and figures.mark_prediction(ax, None, 4) is None
    assert (len(ax.get_lines()), len(ax.texts)) == before
    label = figures.mark_prediction(ax, 8, 3.5, "yours")
    assert tuple(ax.get_lines()[-1].get_xydata()[0]) == (8, 3.5) and label.get_text() == "yours"
    fig.draw_without_rendering()
    assert label.get_window_extent().x1 < ax.get_window_extent().x1
    assert figures.mark_prediction(ax, 4, 3.5, "") is None  # a mark without a label


@pytest.mark.parametrize("x, y", [(1, 1), (8, 8), (4.5, 4.5), (8, 1), (4, 5)])
def test_the_label_of_a_prediction_covers_no_curve_and_no_mark(x, y):
    fig, ax = figures.new("One curve")
    (line,) = ax.plot([1, 8], [1, 8])
    label = figures.mark_prediction(ax, x, y)
    fig.draw_without_rendering()
    box, mark = label.get_window_extent(), ax.transData.transform((x, y))
    path = line.get_path().transformed(line.get_transform())
    assert not path.intersects_bbox(box, filled=False) and not box.contains(*mark)


def test_ticks_carry_their_unit():
    fig, ax = figures.new()
    ax.plot([0, 1], [0, 4e12])
    figures.set_unit(ax.yaxis, "B/s")
    fig.draw_without_rendering()
    assert "4 TB/s" in [tick.get_text() for tick in ax.get_yticklabels()]


def test_names_at_the_ends_of_curves_do_not_overlap_and_stay_in_the_figure():
    fig, ax = curves(6)
    ax.plot([1, 8], [2, float("nan")], label="ends early")
    ax.plot([1, 8], [2, 2], label="_unlabelled")
    figures.label_lines(ax)
    fig.draw_without_rendering()
    # An annotation's own extent includes its arrow.
    boxes = {text.get_text(): Text.get_window_extent(text) for text in ax.texts}
    assert set(boxes) == {*(f"curve {i}" for i in range(6)), "ends early"}
    for name, box in boxes.items():
        assert not any(box.overlaps(other) for key, other in boxes.items() if key != name)
        assert box.x1 <= fig.bbox.x1
    ends = sorted((box.y0, name) for name, box in boxes.items() if name.startswith("curve"))
    assert [name for _, name in ends] == [f"curve {i}" for i in range(6)]


@given(st.lists(st.floats(-1e4, 1e4), max_size=12).map(sorted), st.floats(0.1, 100))
def test_moved_apart_as_little_as_it_takes(values, step):
    moved = labels._apart(values, step)
    assert all(b - a >= step * (1 - 1e-6) - 1e-9 for a, b in zip(moved, moved[1:], strict=False))
    assert sum(moved) == pytest.approx(sum(values), abs=1e-6)
    if all(b - a >= step for a, b in zip(values, values[1:], strict=False)):
        assert moved == pytest.approx(values)


NOTEBOOK = """
{pyplot}
from labs_helpers.draw import figures
fig, ax = figures.new("A title")
ax.plot([1, 2, 3])
figures.finish(fig, "shown")
"""


def test_a_notebook_shows_a_figure_once_with_pyplot_or_without(tmp_path, monkeypatch):
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    cells = [NOTEBOOK.format(pyplot=line) for line in ("", "import matplotlib.pyplot as plt", "%matplotlib inline")]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(ROOT)}}).execute()
    for cell in notebook.cells:
        (output,) = cell.outputs
        assert output.output_type == "display_data" and set(output.data) == {"image/png", "text/plain"}
        assert output.metadata["image/png"]["alt"] == "A title"
        assert "0x" not in output.data["text/plain"]
