"""Traces and memory over time, drawn: every piece of work where it ran, gaps empty, names inside their bars."""

import pytest
from matplotlib.colors import to_hex

from labs_helpers.draw import figures
from labs_helpers.draw.memory_timeline import draw_memory
from labs_helpers.draw.timeline import KIND_COLORS, RANGE_COLORS, draw_timeline
from labs_helpers.measure.kernel_kinds import KINDS


def event(cat, name, ts, dur, tid, **args):
    args = {key.replace("_", " "): value for key, value in args.items()}
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": args}


KERNELS = [
    ("nvjet_tst_128x64", "aten::mm", 40.0),
    ("void at::native::vectorized_elementwise_kernel<4>", "aten::mul", 4.0),
    ("void at::native::reduce_kernel<512>", "aten::mean", 8.0),
    ("void pytorch_flash::flash_fwd_kernel<64>", "aten::_flash_attention_forward", 30.0),
]


def trace(calls=8):
    """A forward pass on thread 1, a backward pass on thread 2, a wait; kernels on stream 7, copies on stream 20."""
    events = [event("user_annotation", "forward", 0.0, calls * 20.0, 1, External_id=9000)]
    events += [event("user_annotation", "norm", 5.0, 30.0, 1, External_id=9001)]
    for i in range(2 * calls):
        name, operator, us = KERNELS[i % len(KERNELS)]
        tid, at = (1, 20.0 * i) if i < calls else (2, 20.0 * i)
        outer = operator if tid == 1 else "autograd::engine::evaluate_function: MulBackward0"
        events.append(event("cpu_op", outer, at, 15.0, tid, External_id=1000 + i))
        events.append(event("cpu_op", operator, at + 1, 13.0, tid, External_id=i))
        events.append(event("cuda_runtime", "cudaLaunchKernel", at + 5, 4.0, tid, correlation=i, External_id=i))
        events.append(event("kernel", name, 100 + 50.0 * i, us, 7, stream=7, correlation=i, External_id=i))
    events.append(event("gpu_memcpy", "Memcpy DtoD (Device -> Device)", 130, 60, 20, stream=20, correlation=99))
    events.append(event("cuda_runtime", "cudaDeviceSynchronize", 40.0 * calls, 60.0 * calls, 1, correlation=98))
    return events


def labels(fig):
    return [text.get_text() for text in fig.axes[0].get_yticklabels()]


def spans(fig, color):
    """(row, start, end) of every bar of a color, from top to bottom and left to right."""
    found = []
    for bars in fig.axes[0].collections:
        if to_hex(bars.get_facecolor()[0]) == to_hex(color):
            for path in bars.get_paths():
                box = path.get_extents()
                found.append((round((box.y0 + box.y1) / 2), round(box.x0, 3), round(box.x1, 3)))
    return sorted(found)


def test_rows_and_colours():
    fig = draw_timeline(trace(), "A step")
    rows = ["CPU: ranges", "", "operators", "launches", "backward: operators", "launches", "GPU: stream 7"]
    assert labels(fig) == [*rows, "GPU: stream 20"]
    products = [(6, 100.0 + 50 * i, 140.0 + 50 * i) for i in range(16) if i % 4 == 0]
    assert spans(fig, KIND_COLORS["matrix products"]) == products
    assert spans(fig, KIND_COLORS["copies"]) == [(7, 130.0, 190.0)]
    assert len(spans(fig, KIND_COLORS["norms, softmax, sums"])) == len(spans(fig, KIND_COLORS["attention"])) == 4
    (legend,) = fig.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "the CPU waits",
        "matrix products",
        "attention",
        "elementwise",
        "norms, softmax, sums",
        "copies",
    ]
    assert len(figures.png(fig)) < 60_000


def test_operators_inside_others_are_not_drawn_and_ranges_stand_above_what_they_hold():
    fig = draw_timeline(trace())
    operators = spans(fig, "#B9B6AC")
    assert operators == [(2 if i < 8 else 4, 20.0 * i, 20.0 * i + 15) for i in range(16)]
    assert spans(fig, RANGE_COLORS[0]) == [(0, 0.0, 160.0)] and spans(fig, RANGE_COLORS[1]) == [(1, 5.0, 35.0)]


def test_a_ranges_name_has_one_colour_on_the_cpu_and_on_the_gpu():
    events = [event("user_annotation", name, 10.0 * i, 8.0, 1) for i, name in enumerate("abcab")]
    events += [event("gpu_user_annotation", name, 50 + 10.0 * i, 8.0, 7) for i, name in enumerate("cb")]
    events.append(event("kernel", "nvjet", 50.0, 18.0, 7, stream=7, correlation=1))
    fig = draw_timeline(events)
    assert labels(fig)[0] == "CPU: ranges" and labels(fig)[-2:] == ["GPU: ranges", "GPU: stream 7"]
    gpu = len(labels(fig)) - 2
    assert spans(fig, RANGE_COLORS[0]) == [(0, 0.0, 8.0), (0, 30.0, 38.0)]
    assert spans(fig, RANGE_COLORS[1]) == [(0, 10.0, 18.0), (0, 40.0, 48.0), (gpu, 60.0, 68.0)]
    assert spans(fig, RANGE_COLORS[2]) == [(0, 20.0, 28.0), (gpu, 50.0, 58.0)]


def test_a_window_shows_what_lies_in_it():
    fig = draw_timeline(trace(), window=(290, 100))
    ax = fig.axes[0]
    assert ax.get_xlim() == (290, 390)
    assert labels(fig) == ["launches", "backward: operators", "launches", "GPU: stream 7"]
    assert spans(fig, KIND_COLORS["matrix products"]) == [(labels(fig).index("GPU: stream 7"), 300.0, 340.0)]
    with pytest.raises(ValueError, match="the trace has no event between 5000 and 5010"):
        draw_timeline(trace(), window=(5000, 10))
    with pytest.raises(ValueError, match="no event"):
        draw_timeline([])


def test_long_traces_are_in_milliseconds():
    events = [event("kernel", "nvjet", 1000.0 * i, 500.0, 7, stream=7, correlation=i) for i in range(10)]
    fig = draw_timeline(events)
    assert fig.axes[0].get_xlabel() == "time, ms" and fig.axes[0].get_xlim() == (0, 9.5)
    assert spans(fig, KIND_COLORS["matrix products"])[-1] == (0, 9.0, 9.5)


@pytest.mark.parametrize("window", [None, (0, 150), (300, 60), (300, 12)])
def test_names_stay_inside_their_bars(window):
    fig = draw_timeline(trace(), window=window)
    fig.draw_without_rendering()
    ax = fig.axes[0]
    boxes = [path.get_extents(ax.transData) for bars in ax.collections for path in bars.get_paths()]
    for text in ax.texts:
        inside = text.get_window_extent()
        assert any(
            box.x0 - 1 <= inside.x0 and inside.x1 <= box.x1 + 1 and box.y0 <= inside.y0 and inside.y1 <= box.y1
            for box in boxes
        ), text.get_text()
    if window:
        assert ax.texts


def test_a_cpus_work_is_not_called_a_gpus():
    events = [
        event("cpu_op", "aten::mm", 0.0, 9.0, 1, External_id=1),
        event("cuda_runtime", "launch", 0.0, 0.0, 1, correlation=1, External_id=1),
        event("kernel", "aten::mm", 0.0, 9.0, 0, stream=0, correlation=1, External_id=1),
    ]
    assert labels(draw_timeline(events)) == ["CPU: operators", "launches", "work"]


def test_every_kind_has_a_colour_of_its_own():
    assert list(KIND_COLORS) == list(KINDS) and len(set(KIND_COLORS.values())) == len(KINDS)


TIMELINE = {
    "device": "cuda",
    "before": 3_000_000_000,
    "peak": 9_000_000_000,
    "points": [[0, 3 * 10**9], [10, 6 * 10**9], [20, 9 * 10**9], [30, 4 * 10**9], [40, 3 * 10**9]],
    "marks": [[0, "forward"], [18, "backward"], [35, "update"]],
}


def test_memory_is_drawn_with_its_marks_bands_and_peak():
    fig = draw_memory(TIMELINE, "A step", {"parameters": 10**9, "AdamW's moments": 2 * 10**9})
    (ax,) = fig.axes
    texts = {text.get_text(): text for text in ax.texts}
    assert set(texts) == {"parameters", "AdamW's moments", "forward", "backward", "update", "9.0 GB"} | {
        "made during the call"
    }
    curve = ax.get_lines()[0]
    assert [list(point) for point in curve.get_xydata()] == TIMELINE["points"]
    assert texts["9.0 GB"].xy == (20, 9e9)
    fig.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text() in ("forward", "backward", "update")]
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert len(figures.png(fig)) < 60_000


def test_what_the_base_leaves_is_a_band_too_and_more_than_there_was_is_refused():
    fig = draw_memory(TIMELINE, base={"parameters": 10**9})
    assert "there before" in {text.get_text() for text in fig.axes[0].texts}
    with pytest.raises(ValueError, match=r"4,000,000,000 bytes, of 3,000,000,000"):
        draw_memory(TIMELINE, base={"parameters": 4 * 10**9})
    draw_memory({"device": "cpu", "before": 0, "peak": 0, "points": [[0, 0]], "marks": []})
