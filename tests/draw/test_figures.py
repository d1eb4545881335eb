import base64
import io
import json
from html.parser import HTMLParser
from pathlib import Path

import matplotlib
import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.text import Text

from labs_helpers.draw import figures, labels
from labs_helpers.draw.alternatives import LABEXTENSIONS

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


def image_of(pixels):
    """A figure whose PNG has exactly these pixels."""
    fig = figures.Figure(figsize=(pixels.shape[1] / 100, pixels.shape[0] / 100), dpi=100)
    fig.figimage(pixels)
    return fig


def read(png):
    return np.asarray(PIL.Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


@given(st.integers(0, 2**32 - 1), st.integers(1, 400), st.sampled_from([1, 4, 8]), st.booleans())
@settings(max_examples=25, deadline=None)
def test_png_has_each_colour_of_an_area_and_others_nearly(seed, colors, side, shades):
    rng = np.random.default_rng(seed)
    palette = rng.integers(0, 256, (colors, 3), dtype=np.uint8)
    if shades:  # of one color, as a heat map has
        palette = np.stack([np.full(colors, 200), 100 + np.arange(colors) % 150, np.full(colors, 90)], 1).astype(
            np.uint8
        )
    cells = rng.integers(0, colors, (30, 20))
    pixels = palette[np.kron(cells, np.ones((side, side), int))]
    with matplotlib.rc_context({"savefig.dpi": "figure"}):
        seen = read(figures.png(image_of(pixels)))
    assert np.abs(seen - pixels).max() <= figures.SEEN
    _, where, count = np.unique(pixels.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    area = (count >= figures.FILLED)[where.ravel()]
    assert (seen.reshape(-1, 3)[area] == pixels.reshape(-1, 3)[area]).all()


def test_values_of_a_heat_map_that_differ_by_a_hundredth_keep_their_own_colours():
    fig, ax = figures.new("Heat")
    values = 1 + np.arange(400).reshape(20, 20) / 100
    ax.imshow(values, cmap="viridis")
    drawn = io.BytesIO()
    fig.savefig(drawn, format="png")
    for i in range(20):
        x, y = map(int, ax.transData.transform((i, i)))
        at = -1 - y, x
        assert (read(figures.png(fig))[at] == read(drawn.getvalue())[at]).all()


def test_the_text_alternative_says_axes_curves_and_what_was_measured():
    fig, (left, right) = figures.new("Ours is 2 & 3 times as fast", ncols=2)
    left.set(title="small", xlabel="n", ylabel="ms")
    left.plot([1, 2], label="ours")
    right.set(title="large")
    figures.write_below(fig, "NVIDIA H200, float16")
    assert figures.alternative(fig) == (
        "Ours is 2 & 3 times as fast. small: x: n; y: ms; ours. large. NVIDIA H200, float16"
    )
    assert figures.alternative(figures.say("nothing was\nmeasured")) == "nothing was measured"
    assert len(figures.alternative(figures.new("a word " * 200)[0])) <= figures.ALTERNATIVE


def test_a_page_has_the_text_alternative_in_its_img_tag():
    nbformat = pytest.importorskip("nbformat")
    from labs_helpers.course.run_labs import to_html

    image = base64.b64encode(figures.png(curves()[0])).decode()
    output = nbformat.v4.new_output(
        "display_data", {"image/png": image}, metadata={"image/png": {"alt": 'x < 3 & "y"'}}
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1", outputs=[output])])
    page, images = HTMLParser(), []
    page.handle_starttag = lambda tag, attributes: images.append(dict(attributes)) if tag == "img" else None
    page.feed(to_html(notebook, "page"))
    assert [(one["alt"], one["src"].partition(",")[2]) for one in images] == [('x < 3 & "y"', image)]
    assert "image/png" in output.data  # the notebook itself stays


def test_jupyterlab_finds_the_renderer_of_text_alternatives():
    """What JupyterLab reads of a federated extension, by its documentation; a browser has shown that it draws."""
    (folder,) = LABEXTENSIONS.iterdir()
    package = json.loads((folder / "package.json").read_text())
    built = package["jupyterlab"]["_build"]
    script = (folder / built["load"]).read_text()
    assert package["name"] == folder.name and f"_JUPYTERLAB['{folder.name}']" in script
    assert built["mimeExtension"] == package["jupyterlab"]["mimeExtension"] and "mimeTypes: ['image/png']" in script


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


def test_a_short_logarithmic_axis_carries_its_unit_too():
    fig, ax = figures.new()
    ax.plot([0, 1], [1.1e-3, 4.5e-3])
    ax.set_yscale("log")
    figures.set_unit(ax.yaxis, "s")
    fig.draw_without_rendering()
    texts = [tick.get_text() for tick in ax.get_yticklabels(minor=True)]
    assert [text for text in texts if text][:3] == ["2 ms", "3 ms", "4 ms"]


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
