"""Test the figures that only lab 01 draws, on made-up traces, counters and timings."""

from __future__ import annotations

import pandas
import pytest
from matplotlib.colors import to_hex

from labs_helpers.draw import figures
from labs_helpers.draw.timeline import KIND_COLORS
from labs_helpers.measure import results
from labs_helpers.measure.kernel_kinds import ATTENTION, ELEMENTWISE, OTHER, PRODUCTS
from labs_helpers.measure.trace import Trace
from labs_helpers.transformer import study
from labs_helpers.transformer.lab01 import counters
from labs_helpers.transformer.lab01 import pictures as charts
from tests.transformer.test_charts import texts, title, well_set

EAGER = [
    ("gemm", 0, 4000),
    ("elementwise", 5000, 3000),
    ("flash", 8000, 1000),
    ("gather", 9000, 50),
    ("memcpy", 9100, 90),
]
COMPILED = [("gemm", 0, 4000), ("triton_poi_fused", 4000, 500), ("flash", 4500, 1000)]


def events(kernels, end: float = 0) -> list[dict]:
    """A trace of (name, start, µs) on one stream, and at its end a call on the CPU that lasts until `end`."""
    worked = [
        {"ph": "X", "cat": "kernel", "name": name, "ts": ts, "dur": us, "tid": 7, "args": {"stream": 7}}
        for name, ts, us in kernels
    ]
    return [
        *worked,
        {"ph": "X", "cat": "cpu_op", "name": "aten::x", "ts": 0, "dur": end, "tid": 1, "args": {"External id": 1}},
    ]


def bars(ax) -> dict:
    """(kind, place) → ms, told by color."""
    kinds = {color: kind for kind, color in KIND_COLORS.items()}
    kinds = {to_hex(color): kind for color, kind in kinds.items()}
    return {
        (kinds[to_hex(patch.get_facecolor())], round(patch.get_y() + patch.get_height() / 2)): patch.get_width()
        for patch in ax.patches
    }


def test_a_bar_has_the_time_of_each_kind():
    fig = charts.draw_kinds({"eager": events(EAGER, 10_000), "compiled": events(COMPILED)})
    well_set(fig)
    found = bars(fig.axes[0])
    assert found[PRODUCTS, 0] == found[PRODUCTS, 1] == pytest.approx(4)
    assert (found[ELEMENTWISE, 0], found[ELEMENTWISE, 1]) == pytest.approx((3, 0.5))
    assert found[OTHER, 0] == pytest.approx(0.14), "copies and 'other' are small"
    assert title(fig) == "8.14 ms of GPU work become 5.5: elementwise shrank the most"
    places = {text.get_text().replace("\n", " "): text.xy[0] for text in fig.axes[0].texts if hasattr(text, "xy")}
    middles = {PRODUCTS: 2, ATTENTION: 4.5, ELEMENTWISE: 6.5, OTHER: 8.07}
    assert {kind: places[kind] for kind in middles} == pytest.approx(middles)


def test_long_names_find_room():
    traces = {"eager, with plain attention": events(EAGER, 10_000), "compiled, with PyTorch's own": events(COMPILED)}
    well_set(charts.draw_kinds(traces, "one step of a model with a long description"))


def test_what_is_little_of_one_trace_but_not_of_the_other_has_its_own_piece():
    long, short = [("gemm", 0, 9900), ("flash", 9900, 100)], [("gemm", 0, 100), ("flash", 100, 20)]
    assert (ATTENTION, 0) in bars(charts.draw_kinds({"eager": events(long), "compiled": events(short)}).axes[0])
    assert (OTHER, 0) in bars(charts.draw_kinds({"eager": events(long)}).axes[0])


def test_kinds_have_the_timelines_colours_and_a_trace_says_where_it_is_from():
    trace = Trace(events(COMPILED, 6000), {"machine": "NVIDIA H200"})
    fig = charts.draw_kinds({"compiled": trace})
    well_set(fig)
    assert (ATTENTION, 0) in bars(fig.axes[0])
    assert title(fig) == "matrix products: 73% of the GPU's work\nNVIDIA H200 (recorded)"


def test_names_of_many_thin_kinds_do_not_overlap():
    thin = ["gemm", "flash", "elementwise", "softmax", "multi_tensor_apply", "memcpy", "nccl", "gather"]
    for kernels in (
        [(name, 300 * i, 300) for i, name in enumerate(thin)],
        [(name, 300 * i, 5 + i) for i, name in enumerate(thin)],
    ):
        well_set(charts.draw_kinds({"eager": events(kernels, 2400)}))
        well_set(charts.draw_kinds({"eager": events(kernels, 5000), "compiled": events(kernels, 12_000)}))


def test_a_trace_without_work_has_no_bar_and_no_trace_is_an_error():
    fig = charts.draw_kinds({"idle": events([], 1000)})
    assert bars(fig.axes[0]) == {} and title(fig) == "The GPU does nothing"
    with pytest.raises(ValueError, match="no trace to draw"):
        charts.draw_kinds({})


@pytest.fixture
def counted() -> pandas.DataFrame:
    """Counters that say twice the bytes read, the bytes written, and the FLOPs; the softmax at 2 TB/s."""
    rows = []
    for name, (read, written, flops) in counters.PREDICTED.items():
        predicted = {"predicted_read": read, "predicted_written": written, "predicted_flops": flops}
        more = 1 if name.startswith("softmax") else 2
        seconds = (read * more + written) / (2e12 if more == 1 else 1e12)
        found = {"bytes_read": more * read, "bytes_written": written, "tensor_flops": flops, "ns": 1e9 * seconds}
        on = {"on.machine": "NVIDIA H200", "on.name": "NVIDIA H200"}
        rows.append({"kind": "counters", "name": name} | predicted | found | on)
    return pandas.DataFrame([*rows, {"kind": "step"}])


def test_counters_stand_inside_what_was_predicted(counted):
    fig = charts.draw_counters(counted, copy_bandwidth=4e12)
    well_set(fig)
    read, _, flops, share = fig.axes
    widths = [patch.get_width() for patch in read.patches]
    assert widths[3:] == list(counted["bytes_read"][:3]) and widths[:3] == list(counted["predicted_read"][:3])
    assert [patch.get_width() for patch in share.patches] == pytest.approx([0.5, 0.25, 0.25])
    told = [text.get_text() for text in read.texts]
    assert told[1].endswith("2.00×") and told[0] == "134 MB, 1.00×"
    assert [text.get_text() for text in flops.texts][:2] == ["0 FLOP", "137 GFLOP, 1.00×"]
    assert title(fig).startswith("fused_matmul reads 2.0 times its operands\n")
    assert "NVIDIA H200 (recorded)" in title(fig)


def test_without_a_copys_bandwidth_the_datasheets_is_taken(counted):
    fig = charts.draw_counters(counted)
    well_set(fig)
    assert fig.axes[3].patches[0].get_width() == pytest.approx(2 / 4.8)
    assert fig.axes[3].get_title("left") == "DRAM bandwidth"


@pytest.mark.parametrize("frame", [pandas.DataFrame(), pandas.DataFrame([{"kind": "step"}])], ids=["nothing", "steps"])
def test_without_counters_the_figure_says_so(frame):
    assert texts(charts.draw_counters(frame)) == ["No counters here: they were read on an H200."]


def test_wrong_timings_are_factors_of_the_truth():
    measured = {"no wait": 0.2, "median": 5.1, "first call too": 31, "mean": 8}
    fig = charts.draw_wrong_timings(measured, 5)
    well_set(fig)
    ax = fig.axes[0]
    assert ax.get_xscale() == "log"
    ends = dict(
        zip(
            ["no wait", "median", "mean", "first call too"],
            [p.get_x() + p.get_width() for p in ax.patches],
            strict=True,
        )
    )
    assert ends == pytest.approx({name: ms / 5 for name, ms in measured.items()})
    assert texts(fig) == ["0.04×", "1×", "1.6×", "6.2×"] and title(fig) == "Wrong ways give 0.04× to 6.2× the true time"
    (dots,) = [line for line in ax.get_lines() if line.get_marker() == "o"]
    assert len(dots.get_xdata()) == 1


def test_each_way_may_have_a_truth_of_its_own_and_zero_reaches_the_edge():
    fig = charts.draw_wrong_timings({"nothing": 0, "half": 2, "right": 3}, {"nothing": 1, "half": 4, "right": 3})
    well_set(fig)
    assert texts(fig) == ["0×", "0.5×", "1×"]
    assert title(charts.draw_wrong_timings({"a": 1, "b": 1.01}, 1)) == "Every way gives the true time"
    assert title(charts.draw_wrong_timings({"a": 1, "b": 12}, 1)) == "Wrong ways give 12× the true time"


@pytest.mark.parametrize("measured, truth", [({}, 1), ({"a": 1}, 0), ({"a": 1}, {"a": -1})])
def test_without_a_true_time_there_is_an_error(measured, truth):
    with pytest.raises(ValueError, match="a true time above 0"):
        charts.draw_wrong_timings(measured, truth)


def test_the_figures_stay_small(counted):
    for fig in (charts.draw_kinds({"eager": events(EAGER, 10_000)}), charts.draw_counters(counted)):
        assert len(figures.png(fig)) < 100_000


def test_the_committed_counters_are_drawn():
    if not results.path_for("transformer", "nvidia-h200").is_file():
        pytest.skip("not measured yet")
    well_set(charts.draw_counters(study.load("nvidia-h200")))
