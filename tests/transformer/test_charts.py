"""The figures of the transformer's study, drawn of made-up records whose findings are known."""

from __future__ import annotations

import dataclasses
import itertools
from functools import partial
from unittest.mock import patch

import pandas
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

from labs_helpers.course.prediction import Prediction
from labs_helpers.draw import figures
from labs_helpers.measure import results
from labs_helpers.transformer import SIZES, charts, counts, grids, study
from labs_helpers.transformer.charts.words import EAGER
from labs_helpers.transformer.records import MEASURED, of_setup, timed, walked_steps
from labs_helpers.transformer.setups import ORDERS, PRECISIONS, Setup, treatment, walk

H200 = {"on.machine": "NVIDIA H200", "on.name": "NVIDIA H200"}
PER_LAYER, BESIDES = 43, 31
SPEED = {"fp32": 0.05, "tf32": 0.25, "fp16": 0.42, "bf16-autocast": 0.42, "bf16": 0.5}  # of the 16-bit peak


def record(point: grids.Point) -> dict:
    """What an H200 might measure: products, bytes moved, and 6 µs for each launch that is in nobody's shadow."""
    config, setup, tokens = point.config, point.setup, point.batch * point.length
    flops = counts.flops_per_token(config, point.length, causal=True)
    itemsize = PRECISIONS[setup.precision].itemsize
    forward_launches = (PER_LAYER if setup.attention == "plain" else PER_LAYER - 12) * config.layers + BESIDES
    update = {"for-loop": 14 * 9 * config.layers, "foreach": 60, "fused": 8}[setup.optimizer]
    shrunk = 0.3 if setup.compiled else 1
    launches = round(shrunk * 3 * forward_launches) + update
    scores = 12 * point.batch * config.heads * point.length**2 * config.layers * itemsize
    moved = shrunk * (40 * tokens * config.width * config.layers * itemsize + scores * (setup.attention == "plain"))
    forward = 1e3 * (tokens * flops.forward / SPEED[setup.precision] / 989e12 + moved / 4e12)
    again = forward * (setup.segments > 0)
    work, waits = 3 * forward + again + 0.5, 0 if setup.graph else 6e-3 * launches
    step = max(work, waits)
    attention = "plain" if setup.attention == "plain" else "sdpa"
    peak = 1.02 * counts.step_peak(config, point.batch, point.length, itemsize, attention, setup.optimizer)
    if setup.segments:
        peak *= 0.2 + 0.02 * setup.segments + 0.4 / setup.segments
    measured = {
        "forward_ms": None if setup.graph else step * forward / work,
        "backward_ms": None if setup.graph else step * (2 * forward + again) / work,
        "step_ms": step,
        "peak_bytes": int(peak),
        "state_bytes": 3 * itemsize * sum(counts.parameters(config).values()),
        "launches": launches,
        "forward_launches": None if setup.graph else round(shrunk * forward_launches),
        "busy": min(1.0, work / step),
    }
    fits = peak < 141e9
    return {
        "study": "transformer",
        "kind": "step",
        "size": point.size,
        "layers": config.layers,
        "batch": point.batch,
        "length": point.length,
        **dataclasses.asdict(setup),
        "seed": 0,
        "flops_per_token": flops.step,
        "out_of_memory": not fits,
        **(measured if fits else {}),
        **H200,
    }


@pytest.fixture(scope="module")
def frame() -> pandas.DataFrame:
    return made()


def made() -> pandas.DataFrame:
    """Records of every point that is shipped for a GPU, and of another kind."""
    points = [point for name in study.FILES["cuda"] for point in grids.read(name, {})]
    counters = {"study": "transformer", "kind": "counters", "name": "fused_matmul", "ns": 1.0} | H200
    return pandas.DataFrame([*map(record, dict.fromkeys(points)), counters])


FIGURES = {
    "sizes": charts.draw_sizes,
    "launches": charts.draw_launches,
    "peak": partial(charts.draw_peak, prediction=Prediction("?", 3000)),
    "precision": charts.draw_precision,
    "checkpoints": partial(charts.draw_checkpoints, formula=lambda segments: 6e9 + segments * 3e8 + 5e9 / segments),
    "waterfall": charts.draw_waterfall,
    "batches": charts.draw_batches,
}


@pytest.fixture(scope="module")
def drawn(frame) -> dict:
    return {name: draw(frame) for name, draw in FIGURES.items()}


def title(fig) -> str:
    return fig.get_suptitle() or fig.axes[0].get_title("left")


def texts(fig) -> list[str]:
    return [text.get_text() for ax in fig.axes for text in ax.texts]


def lines(ax) -> dict:
    return {line.get_label(): line for line in ax.get_lines()}


def well_set(fig) -> None:
    """No two texts overlap, and none leaves the figure."""
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


@pytest.mark.parametrize("name", FIGURES)
def test_figures_are_well_set_and_say_where_they_are_from(drawn, name):
    well_set(drawn[name])
    assert "NVIDIA H200 (recorded)" in title(drawn[name])


def test_figures_are_small(drawn):
    assert all(len(figures.png(drawn[name])) < 100_000 for name in ("sizes", "waterfall"))


def test_sizes_are_drawn_per_token_and_the_title_has_the_factors(frame, drawn):
    fig = drawn["sizes"]
    rows = timed(frame, EAGER, size="small", batch=1, length=4096)
    small, medium, large, mfu = fig.axes
    assert [ax.get_title("left") for ax in fig.axes] == ["small", "medium", "1b", "MFU"]
    assert lines(small)["step"].get_ydata()[-1] == pytest.approx(rows["step_ms"].iloc[0] / 1e3 / 4096)
    assert list(lines(small)["forward"].get_xdata()) == [512, 1024, 2048, 4096]
    flops = counts.flops_per_token(SIZES["small"], 4096, causal=True).step
    assert lines(mfu)["small"].get_ydata()[-1] == pytest.approx(flops * 4096 / (rows["step_ms"].iloc[0] / 1e3) / 989e12)
    ends = [timed(frame, EAGER, size="1b", length=n, batch=4096 // n)["step_ms"].iloc[0] for n in (512, 4096)]
    assert f"{ends[1] / ends[0]:.1f}" in title(fig) and "4,096 tokens per step" in title(fig)


def test_a_machine_without_a_datasheet_has_no_mfu_and_a_grid_of_one_batch_is_drawn():
    points = grids.read("cpu", {})
    cpu = pandas.DataFrame([record(point) | {"on.machine": "2-core CPU", "on.name": "2-core CPU"} for point in points])
    fig = charts.draw_sizes(cpu, Setup())
    well_set(fig)
    said = title(fig).replace("\n", " ")
    assert "8 sequences per step" in said and "2-core CPU" in said
    assert any("no datasheet" in text for text in texts(fig))
    assert list(lines(fig.axes[0])["step"].get_xdata()) == sorted({point.length for point in points})


def test_kernels_per_layer_are_found_and_the_prediction_is_drawn(frame, drawn):
    without, with_it = drawn["launches"], charts.draw_launches(frame, Prediction("?", 1500))
    well_set(with_it)
    assert without.axes[0].get_title("left").endswith(f", {PER_LAYER} per layer")
    assert f"small: {12 * PER_LAYER + BESIDES}" in texts(without) and "“2,500 kernels”" in texts(without)
    assert len(with_it.axes[0].get_lines()) == len(without.axes[0].get_lines()) + 1
    assert with_it.axes[0].get_lines()[-1].get_xydata().tolist() == [[12, 1500]]
    waits = lines(without.axes[1])["small"]
    assert list(waits.get_xdata()) == [1024 * 2**i for i in range(7)]
    assert f"waits {waits.get_ydata()[0]:.0%} of a traced step at 1,024 tokens" in title(without)


def test_one_size_alone_has_its_launches_divided_by_its_layers(frame):
    small = frame[frame["size"] == "small"]
    assert f"{(12 * PER_LAYER + BESIDES) / 12:.0f} per layer" in charts.draw_launches(small).axes[0].get_title("left")


@pytest.fixture
def straight() -> pandas.DataFrame:
    """Peaks of 1 GB of states + 4 GB + 4 MB · L, at 4096 tokens per step."""
    points = [point for point in grids.read("sizes", {}) if point.size == "small"]
    return pandas.DataFrame(
        [record(point) | {"peak_bytes": 5e9 + 4e6 * point.length, "state_bytes": 1e9} for point in points]
    )


def test_the_peaks_parts_are_those_of_a_known_line(straight):
    fig = charts.draw_peak(straight, formula=lambda config, batch, length, itemsize: 1e9 * itemsize)
    well_set(fig)
    middles = {label: line.get_ydata()[-1] for label, line in lines(fig.axes[0]).items()}
    assert (middles["states"], middles["the rest, loss too"]) == pytest.approx((0.5e9, 3e9))
    assert middles["∝ L: scores"] == pytest.approx(5e9 + 2e6 * 1.04 * 4096)
    assert middles["formula"] == 2e9  # bfloat16
    assert any("from 722 tokens on" in text for text in texts(fig)) and "4,096 tokens per step" in title(fig)
    first, peak = (5e9 + 4e6 * n for n in (512, 4096))
    assert f"The peak grows {peak / first:.1f} times; the formula" in title(fig)


@pytest.mark.parametrize("guess, drawn", [(None, False), (500, True), (100_000, False), (-1, False)])
def test_a_predicted_length_is_drawn_on_the_line_or_written(straight, guess, drawn):
    fig = charts.draw_peak(straight, prediction=Prediction("?", guess))
    well_set(fig)
    marks = [line for line in fig.axes[0].get_lines() if line.get_marker() == "D"]
    assert len(marks) == drawn and any("your prediction" in text for text in texts(fig)) == (guess is not None)
    assert not drawn or marks[0].get_xydata()[0] == pytest.approx([500, 7e9])


def test_precisions_are_compared_where_all_else_is_alike(frame, drawn):
    fig = drawn["precision"]
    times = [bar.get_width() for bar in fig.axes[0].patches]
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == list(PRECISIONS)
    assert title(fig).startswith(f"bf16 is {times[0] / times[-1]:.1f} times as fast as fp32")
    assert "small, batch 8, 1,024 tokens, sdpa attention" in title(fig)
    assert "plain attention" in title(charts.draw_precision(frame, attention="plain", size="1b", length=1024))


def test_checkpoints_stand_between_none_and_one_more_forward_pass(frame, drawn):
    fig = drawn["checkpoints"]
    memory, time = map(lines, fig.axes)
    assert list(memory["measured"].get_xdata()) == [1, 2, 4, 8, 16]
    assert list(memory["formula"].get_ydata()) == pytest.approx([11.3e9, 9.1e9, 8.45e9, 9.025e9, 11.1125e9])
    forecast = time["one more\nforward pass"].get_ydata()
    assert list(time["measured"].get_ydata()) == pytest.approx(list(forecast))  # as `record` makes them
    assert title(fig).startswith("4 segments: 38% of the memory, 1.33 times the time")
    assert "formula" not in lines(charts.draw_checkpoints(frame).axes[0])


def test_a_waterfall_goes_from_the_first_step_to_the_last(frame, drawn):
    fig = drawn["waterfall"]
    assert [ax.get_title("left") for ax in fig.axes] == list(ORDERS)
    for ax, order in zip(fig.axes, ORDERS, strict=True):
        ms = walked_steps(frame, walk(order))["step_ms"]
        bars = sorted((bar.get_y(), bar.get_x(), bar.get_width()) for bar in ax.patches)
        assert [label.get_text() for label in ax.get_yticklabels()] == ["start", *ORDERS[order], "left"]
        assert sum(width for _, _, width in bars[1:]) == pytest.approx(ms.iloc[0])  # what was saved, and what is left
        assert bars[-1][2] == pytest.approx(ms.iloc[-1])
        for (_, left, _), (_, after, width) in zip(bars[1:-2], bars[2:-1], strict=True):
            assert after + width == pytest.approx(left)
        assert ax.texts[0].get_text().strip() == f"{ms.iloc[0]:.3g} ms"
    assert title(fig).startswith("compiled saves 1.59 or 18.4 ms, by what came before it")


def test_a_step_out_of_memory_or_not_measured_is_passed_over(frame):
    path = walk("arithmetic first")
    at = (frame["size"] == "small") & (frame["batch"] == 4) & (frame["length"] == 1024)
    of = {name: of_setup(frame[at], setup).index for name, setup in path.items()}
    partial_frame = frame.drop(index=of["compiled"])
    partial_frame.loc[of["flash"], ["step_ms", "peak_bytes"]] = None
    partial_frame.loc[of["flash"], "out_of_memory"] = True
    fig = charts.draw_waterfall(partial_frame, {"one": path}, size="small")
    well_set(fig)
    assert {" out of memory", " not measured"} <= set(texts(fig))
    table = charts.remedies_table(partial_frame, path, size="small")
    assert table.loc["flash", ("step, ms", "after")] != table.loc["flash", ("step, ms", "after")]
    assert table.loc["fused", ("step, ms", "before")] == table.loc["bf16", ("step, ms", "after")]
    assert pandas.isna(table.loc["compiled", ("launches", "after")])


def test_the_doctors_table_has_before_and_after(frame):
    table = charts.remedies_table(frame, expected={"bf16": "2 times", "fused": 1.0}, length=1024)
    assert list(table.index) == ["tf32", "bf16", "sdpa", "flash", "fused", "compiled", "by block"]
    before, after = table["step, ms", "before"], table["step, ms", "after"]
    assert list(before[1:]) == list(after[:-1]) and table["predicted", ""]["bf16"] == "2 times"
    rows = walked_steps(frame, treatment(), length=1024)
    assert (rows["size"] == "1b").all() and list(after) == pytest.approx(list(rows["step_ms"][1:]), abs=0.005)
    assert table["times as fast", ""]["tf32"] == pytest.approx(
        rows["step_ms"].iloc[0] / rows["step_ms"].iloc[1], abs=0.005
    )
    assert table["peak, GB", "after"]["bf16"] == pytest.approx(rows["peak_bytes"]["bf16"] / 1e9, abs=0.005)
    assert table["launches", "after"]["fused"] == rows["launches"]["fused"]
    assert "predicted" not in charts.remedies_table(frame)
    assert charts.remedies_table(frame, length=4096)["step, ms", "after"].notna().any()


def test_batches_are_drawn_under_the_roof_with_the_place_where_they_level_off(frame, drawn):
    fig = drawn["batches"]
    ax = fig.axes[0]
    eager, fastest = (line for line in ax.get_lines() if len(line.get_xdata()) == 7)
    full = [line.get_xydata()[0] for line in ax.get_lines() if line.get_markersize() == 9]
    for curve, (batch, rate) in zip((eager, fastest), full, strict=True):
        best = max(curve.get_ydata())
        first = next(x for x, y in curve.get_xydata() if y >= 0.9 * best)
        assert batch == first and rate >= 0.9 * best
        assert f"{best / roof(1024):.0%} MFU" in title(fig)
    assert lines(ax)["_level"].get_ydata()[0] == pytest.approx(roof(1024))
    assert {"sdpa attention, bf16, eager", "flash attention, bf16, compiled, fused optimizer"} <= set(texts(fig))


def roof(length: int) -> float:
    return 989e12 / counts.flops_per_token(SIZES["small"], length, causal=True).step


def test_on_a_machine_without_a_datasheet_batches_have_no_roof(frame):
    other = frame.assign(**{"on.name": "some GPU", "on.machine": "some GPU"})
    fig = charts.draw_batches(other)
    well_set(fig)
    assert "_level" not in lines(fig.axes[0]) and "MFU" not in title(fig)


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("what", ["nothing", "other setup", "out of memory"])
def test_without_its_records_a_figure_says_so(frame, name, what):
    fewer = {
        "nothing": pandas.DataFrame(),
        "other setup": frame[(frame["kind"] != "step") | (frame["optimizer"] == "fused") & (frame["batch"] == 64)],
        "out of memory": frame[frame["kind"] == "step"].assign(out_of_memory=True, **{name: None for name in MEASURED}),
    }[what]
    fig = FIGURES[name](fewer)
    assert any("No records here of" in text for text in texts(fig))
    if what == "nothing":
        well_set(fig)
    table = charts.remedies_table(fewer)
    assert len(table) == 7 and table["step, ms", "after"].notna().sum() <= 1


@pytest.mark.parametrize(
    "column, name",
    [("peak_bytes", "precision"), ("forward_ms", "checkpoints"), ("busy", "launches"), ("flops_per_token", "sizes")],
)
def test_what_was_not_measured_leaves_its_place_empty(frame, column, name):
    well_set(FIGURES[name](frame.assign(**{column: None})))
    FIGURES[name](frame.drop(columns=column))


def test_records_older_than_a_field_of_the_setup_have_its_usual_value(frame):
    older = frame.drop(columns="accumulate")
    assert len(timed(older, EAGER)) == len(timed(frame, EAGER)) > 0


def test_the_latest_record_counts(frame):
    newer = frame[frame["kind"] == "step"].assign(step_ms=lambda rows: 2 * rows["step_ms"])
    both = pandas.concat([frame, newer], ignore_index=True)
    once, again = (timed(rows)["step_ms"].to_numpy() for rows in (frame, both))
    assert len(once) > 60 and list(again) == pytest.approx(list(2 * once))


def test_the_committed_record_is_drawn():
    if not results.path_for("transformer", "nvidia-h200").is_file():
        pytest.skip("not measured yet")
    recorded = study.load("nvidia-h200")
    for draw in FIGURES.values():
        fig = draw(recorded)
        well_set(fig)
        assert not any("No records here of" in text for text in texts(fig))
