"""Draw a trace over time: ranges, operators and launches on the CPU, and the work on each stream of the GPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.lanes import Span, draw_spans, finish_rows, write_in
from labs_helpers.draw.roles import COLORS, INK, PAPER, SHADES, color
from labs_helpers.measure import kernel_kinds

Event = dict[str, Any]

KIND_COLORS = {
    kernel_kinds.PRODUCTS: COLORS["blue"],
    kernel_kinds.ATTENTION: COLORS["green"],
    kernel_kinds.ELEMENTWISE: COLORS["orange"],
    kernel_kinds.REDUCTIONS: COLORS["vermillion"],
    kernel_kinds.OPTIMIZER: COLORS["purple"],
    kernel_kinds.COPIES: COLORS["sky"],
    kernel_kinds.COMMUNICATION: COLORS["yellow"],
    kernel_kinds.OTHER: "#8A8880",
}
RANGE_COLORS = SHADES
_OPERATOR, _LAUNCH, _WAIT = color("operator"), color("launch"), color("stalled")
_NAMED = {"the CPU waits": _WAIT} | KIND_COLORS


def draw_timeline(
    events: Iterable[Event], title: str | None = None, window: tuple[float, float] | None = None, width: float = 9.0
) -> Figure:
    """Return the figure of a trace's events (`measure.trace`). Each CPU thread has one row per level of its ranges, one
    for its outermost operators, and one for its launches and waits; each stream of the GPU has rows for ranges and for
    work, colored by kind.

    window: (start, length) in µs, by default the whole trace. width: of the figure, in inches. Raises ValueError if no
    event is in the window.
    """
    events = [event for event in events if event["ph"] == "X"]
    start, length = window or _extent(events)
    rows = {
        label: seen
        for label, spans in _rows(events)
        if (seen := [span for span in spans if span.stop >= start and span.start <= start + length])
    }
    if not rows:
        raise ValueError(f"the trace has no event between {start:g} and {start + length:g} µs")
    scale, unit = (1e-3, "ms") if length >= 5000 else (1, "µs")
    fig, ax = figures.new(title, width, 1.3 + 0.36 * len(rows))
    ax.set(xlim=(start * scale, (start + length) * scale), xlabel=f"time, {unit}")
    finish_rows(ax, [label.split("\t")[0] for label in rows])
    for y, (label, spans) in enumerate(rows.items()):
        rows[label] = spans = [Span(scale * s.start, scale * s.stop, *s[2:]) for s in spans]
        thin = all(span.color in (_LAUNCH, _WAIT) for span in spans)
        # Work has no edge, because an edge would hide the gaps; launches are so short that only their edge is visible.
        edges = dict.fromkeys(RANGE_COLORS, INK) | {_LAUNCH: _LAUNCH, _OPERATOR: PAPER if len(spans) < 60 else "none"}
        draw_spans(ax, y, spans, 0.34 if thin else 0.72, edges)
    shown = {span.color for spans in rows.values() for span in spans}
    figures.legend_below(fig, {name: shade for name, shade in _NAMED.items() if shade in shown})
    write_in(ax, enumerate(rows.values()))
    return fig


def _rows(events: list[Event]) -> Iterable[tuple[str, list[Span]]]:
    """Return (label, bars) from top to bottom. Text after a tab makes a label unique and is not shown."""
    operators = [event for event in events if event["cat"] == "cpu_op"]
    names = {event["args"]["External id"]: _short(event["name"]) for event in operators}
    tints: dict[str, str] = {}
    for event in events:
        if event["cat"] in ("user_annotation", "gpu_user_annotation"):
            tints.setdefault(event["name"], RANGE_COLORS[len(tints) % len(RANGE_COLORS)])
    threads = {e["tid"]: None for e in events if e["cat"] in ("cpu_op", "user_annotation", "cuda_runtime")}
    for number, tid in enumerate(threads):
        here = [event for event in events if event["tid"] == tid]
        who = "CPU" if number == 0 else "backward" if _is_autograds(here) else f"CPU, thread {number + 1}"
        ranges = list(_range_rows(f"{who}: ranges\t{tid}", here, "user_annotation", tints))
        yield from ranges
        outermost = _levels([event for event in here if event["cat"] == "cpu_op"])[:1]
        label = f"operators\t{tid}" if ranges else f"{who}: operators\t{tid}"
        yield label, [_bar(e, _OPERATOR, _short(e["name"])) for level in outermost for e in level]
        calls = [event for event in here if event["cat"] == "cuda_runtime"]
        yield f"launches\t{tid}", [_bar(e, _WAIT if "Synchronize" in e["name"] else _LAUNCH) for e in calls]
    work = kernel_kinds.kinds(events)
    on_a_cpu = any(event["cat"] == "cuda_runtime" and event["name"] == "launch" for event in events)
    for stream in sorted({event["args"].get("stream", 0) for event, _ in work}):
        on_it = [event for event in events if event["tid"] == stream]
        yield from _range_rows(f"GPU: ranges\t{stream}", on_it, "gpu_user_annotation", tints)
        yield (
            "work" if on_a_cpu else f"GPU: stream {stream}",
            [
                _bar(event, KIND_COLORS[kind], names.get(event["args"].get("External id"), _short(event["name"])))
                for event, kind in work
                if event["args"].get("stream", 0) == stream
            ],
        )


def _range_rows(
    label: str, events: list[Event], category: str, tints: dict[str, str]
) -> Iterable[tuple[str, list[Span]]]:
    ranges = [event for event in events if event["cat"] == category]
    for depth, level in enumerate(_levels(ranges)):
        bars = [_bar(event, tints[event["name"]], _short(event["name"])) for event in level]
        yield label if depth == 0 else f"\t{label} {depth}", bars


def _levels(events: list[Event]) -> list[list[Event]]:
    """Group the events of one thread by the number of other events around them, the outermost first."""
    levels: list[list[Event]] = []
    ends: list[float] = []
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        while ends and ends[-1] <= event["ts"]:
            ends.pop()
        if len(ends) == len(levels):
            levels.append([])
        levels[len(ends)].append(event)
        ends.append(event["ts"] + event["dur"])
    return levels


def _bar(event: Event, color: str, text: str = "") -> Span:
    return Span(event["ts"], event["ts"] + event["dur"], color, text)


def _short(name: str) -> str:
    name = name.rpartition("evaluate_function: ")[2].strip("# ")
    return name.removeprefix("aten::").removeprefix("void ").split("<")[0]


def _is_autograds(events: list[Event]) -> bool:
    return any(event["name"].startswith("autograd::engine") for event in events)


def _extent(events: list[Event]) -> tuple[float, float]:
    first = min((event["ts"] for event in events), default=0.0)
    return first, max((event["ts"] + event["dur"] for event in events), default=0.0) - first
