"""A trace drawn over time: ranges and operators on the CPU, its launches, and the work on each stream of the GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.textpath import TextPath

from labs_helpers.draw import figures
from labs_helpers.measure import kernel_kinds

Event = dict[str, Any]

KIND_COLORS = {
    kernel_kinds.PRODUCTS: figures.COLORS["blue"],
    kernel_kinds.ATTENTION: figures.COLORS["green"],
    kernel_kinds.ELEMENTWISE: figures.COLORS["orange"],
    kernel_kinds.REDUCTIONS: figures.COLORS["vermillion"],
    kernel_kinds.OPTIMIZER: figures.COLORS["purple"],
    kernel_kinds.COPIES: figures.COLORS["sky"],
    kernel_kinds.COMMUNICATION: figures.COLORS["yellow"],
    kernel_kinds.OTHER: "#8A8880",
}
_DARK = {figures.COLORS[name] for name in ("blue", "green", "vermillion")}
_LETTERS = 6.5  # points
_OPERATOR, _LAUNCH, _WAIT = "#B9B6AC", figures.INK, "#EDB58F"
RANGE_COLORS = ("#E4E1D8", "#CFE0EA", "#F3DFC0", "#D2E8DC", "#EFDAE4", "#F6F0B8")  # of names, as they first appear


class _Bar(NamedTuple):
    start: float
    length: float
    color: str
    text: str = ""


def draw_timeline(
    events: Iterable[Event], title: str | None = None, window: tuple[float, float] | None = None, width: float = 9.0
) -> Figure:
    """The figure of a trace's events (`measure.trace`): per thread of the CPU the ranges, one row for each level of
    them, its outermost operators, and its launches and waits; per stream of the GPU ranges and work, coloured by kind.

    window: (start, length) in µs, by default the whole trace. width: of the figure, in inches. ValueError for events
    none of which lies in the window.
    """
    events = [event for event in events if event["ph"] == "X"]
    start, length = window or _extent(events)
    rows = {
        label: seen
        for label, bars in _rows(events)
        if (seen := [bar for bar in bars if bar.start + bar.length >= start and bar.start <= start + length])
    }
    if not rows:
        raise ValueError(f"no event of the trace lies between {start:g} and {start + length:g} µs")
    fig, ax = figures.new(title, width=width, height=1.3 + 0.36 * len(rows))
    scale, unit = (1e-3, "ms") if length >= 5000 else (1, "µs")
    ax.set(xlim=(start * scale, (start + length) * scale), ylim=(len(rows) - 0.4, -0.6), xlabel=f"time, {unit}")
    for y, bars in enumerate(rows.values()):
        _draw(ax, y, bars, scale)
    ax.set_yticks(range(len(rows)), [label.split("\t")[0] for label in rows])
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", visible=False)
    ax.spines["left"].set_visible(False)
    colors = {bar.color for bars in rows.values() for bar in bars}
    named = {"the CPU waits": _WAIT} | KIND_COLORS
    legend = [Patch(color=color, label=name) for name, color in named.items() if color in colors]
    if legend:
        columns = math.ceil(len(legend) / math.ceil(len(legend) / 5))
        fig.legend(handles=legend, loc="outside lower left", ncols=columns, fontsize="small", handlelength=1.2)
    fig.draw_without_rendering()  # now the axes have their width
    points = 72 / fig.dpi * ax.get_window_extent().width / length
    for y, bars in enumerate(rows.values()):
        for bar in bars:
            left, right = max(bar.start, start), min(bar.start + bar.length, start + length)
            if text := _fitting(bar.text, (right - left) * points):
                color = "white" if bar.color in _DARK else figures.INK
                place = {"ha": "center", "va": "center_baseline", "clip_on": True, "in_layout": False}
                ax.text((left + right) / 2 * scale, y, text, fontsize=_LETTERS, color=color, **place)
    return fig


def _rows(events: list[Event]) -> Iterable[tuple[str, list[_Bar]]]:
    """(label, bars) from top to bottom. What follows a tab makes a label unique and is not shown."""
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
) -> Iterable[tuple[str, list[_Bar]]]:
    ranges = [event for event in events if event["cat"] == category]
    for depth, level in enumerate(_levels(ranges)):
        bars = [_bar(event, tints[event["name"]], _short(event["name"])) for event in level]
        yield label if depth == 0 else f"\t{label} {depth}", bars


def _levels(events: list[Event]) -> list[list[Event]]:
    """Events of one thread by how many others they lie in: the outermost first."""
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


def _draw(ax: Axes, y: int, bars: list[_Bar], scale: float) -> None:
    thin = all(bar.color in (_LAUNCH, _WAIT) for bar in bars)
    separate = (
        dict.fromkeys(RANGE_COLORS, figures.INK)
        | {_LAUNCH: _LAUNCH}
        | ({_OPERATOR: figures.PAPER} if len(bars) < 60 else {})
    )
    height = 0.34 if thin else 0.72
    for color in dict.fromkeys(bar.color for bar in bars):
        spans = [(bar.start * scale, bar.length * scale) for bar in bars if bar.color == color]
        # Work has no edge, which would hide the gaps; launches are so short that their edge is what is seen.
        edge = separate.get(color, "none")
        ax.broken_barh(spans, (y - height / 2, height), facecolor=color, edgecolor=edge, linewidth=0.4)


def _fitting(text: str, points: float) -> str:
    """The text, or its beginning and '…', as far as it fits into a bar of this width; nothing where that is little."""
    while text and _width(text) > points - 2:
        text = text[:-2] + "…" if len(text) > 4 else ""
    return text


@cache
def _width(text: str) -> float:
    return float(TextPath((0, 0), text, size=_LETTERS).get_extents().width)


def _bar(event: Event, color: str, text: str = "") -> _Bar:
    return _Bar(event["ts"], event["dur"], color, text)


def _short(name: str) -> str:
    name = name.rpartition("evaluate_function: ")[2].strip("# ")
    return name.removeprefix("aten::").removeprefix("void ").split("<")[0]


def _is_autograds(events: list[Event]) -> bool:
    return any(event["name"].startswith("autograd::engine") for event in events)


def _extent(events: list[Event]) -> tuple[float, float]:
    first = min((event["ts"] for event in events), default=0.0)
    return first, max((event["ts"] + event["dur"] for event in events), default=0.0) - first
