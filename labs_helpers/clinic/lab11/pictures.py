"""The figures of lab 11: parts of steps over time, waits of ranks, and which rules diagnose which job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from labs_helpers.clinic.causes import HEALTHY
from labs_helpers.draw import figures
from labs_helpers.draw.lanes import Span, draw_lanes, finish_rows
from labs_helpers.draw.roles import RULE, color, text_on

PARTS = {
    "data": "waiting", "forward": "forward", "backward": "backward", "communication": "communication",
    "optimizer": "optimizer",
}  # fmt: skip
Spans = Mapping[str, Sequence[tuple[float, float]]]


def draw_parts(jobs: Mapping[str, Spans], title: str) -> Figure:
    """Draw the parts of steps over time, a row per job or rank. jobs: name → part → spans, in ms."""
    fig, ax = figures.new(title, 9.0, 1.0 + 0.45 * len(jobs))
    rows = {
        name: [[Span(start, stop, color(role)) for part, role in PARTS.items() for start, stop in spans.get(part, ())]]
        for name, spans in jobs.items()
    }
    ends = {name: max(stop for of in spans.values() for _, stop in of) for name, spans in jobs.items()}
    draw_lanes(ax, rows, ends, xlabel="ms")
    figures.legend_below(fig, PARTS)
    return fig


def draw_waits(begun: Sequence[Sequence[float]], finished: Sequence[Sequence[float]], title: str) -> Figure:
    """Draw each rank's work and waits. Clocks are aligned at the end of the first all-reduce, which all ranks leave
    together."""
    fig, ax = figures.new(title, 9.0, 0.9 + 0.45 * len(begun))
    rows, first = {}, max(stops[0] - starts[0] for starts, stops in zip(begun, finished, strict=True))
    for rank, (starts, stops) in enumerate(zip(begun, finished, strict=True)):
        zero = stops[0] - first
        waits = [Span(a - zero, b - zero, color("communication")) for a, b in zip(starts, stops, strict=True)]
        work = [Span(one.stop, other.start, color("compute")) for one, other in zip(waits, waits[1:], strict=False)]
        rows[f"rank {rank}"] = [work + waits]
    draw_lanes(ax, rows, xlabel="ms; the clocks are aligned at the end of the first all-reduce")
    figures.legend_below(fig, {"own work": "compute", "wait in the all-reduce": "communication"})
    return fig


def draw_alive(jobs: Mapping[str, Mapping[str, Any]], title: str) -> Figure:
    """Draw the bytes alive of several jobs over the same number of steps. jobs: name → a timeline of
    `measure.memory_timeline` whose marks are the ends of steps."""
    fig, ax = figures.new(title, 7.2, 3.4)
    for name, timeline in jobs.items():
        at, alive = zip(*timeline["points"], strict=True)
        ends = [change for change, _ in timeline["marks"]]
        ax.plot([_in_steps(change, ends) for change in at], alive, marker="", label=name)
    ax.set(xlabel="step", ylabel="bytes alive", ylim=(0, None))
    figures.set_unit(ax.yaxis, "B")
    figures.legend_below(fig)
    return fig


def _in_steps(change: int, ends: Sequence[int]) -> float:
    """Return a moment's place in steps; within a step, changes are spread evenly."""
    before = [0, *ends]
    number = sum(change >= end for end in ends)
    if number == len(ends):
        return float(number)
    return number + (change - before[number]) / max(1, before[number + 1] - before[number])


def draw_diagnoses(rows: Sequence[tuple[str, str, Mapping[str, str]]], title: str) -> Figure:
    """Draw who diagnoses what: a row per job, a column per set of rules. rows: (job, cause, set → diagnosis)."""
    names = list(rows[0][2])
    fig, ax = figures.new(title, 9.0, 1.0 + 0.27 * len(rows))
    for y, (_, cause, found) in enumerate(rows):
        for x, name in enumerate(names):
            ground = color("reference") if found[name] == cause else color("wrong")
            ax.barh(y, 0.96, left=x, height=0.86, color=ground)
            said = "—" if found[name] == HEALTHY else found[name]
            ax.text(x + 0.48, y, said, ha="center", va="center_baseline", fontsize=7.5, color=text_on(ground))
    finish_rows(ax, [f"{job}: {cause}" for job, cause, _ in rows])
    ax.set(xlim=(0, len(names)), xticks=[x + 0.48 for x in range(len(names))], xticklabels=names)
    ax.xaxis.tick_top()
    ax.tick_params(axis="x", length=0)
    ax.grid(False)
    ax.spines["bottom"].set_visible(False)
    figures.legend_below(fig, {"right": "reference", "wrong": "wrong", "— means healthy": ""})
    return fig


def draw_segments(refused: Mapping[str, Any], title: str) -> Figure:
    """Draw the segments of CUDA's caching allocator at a request that fits into no hole, one row per segment, and the
    request above them. refused: of `measure.segments.first_refusal`."""
    segments, request = refused["segments"], refused["request"]
    fig, ax = figures.new(title, 9.0, 5.4)
    ax.barh(-4, request, height=5, color=color("wrong"))
    ax.text(request, -4, " the request", va="center_baseline", fontsize=7.5)
    for y, (size, blocks) in enumerate(segments):
        ax.barh(y, size, height=1, facecolor=color("cell"), edgecolor=RULE, linewidth=0.4)
        ax.broken_barh(blocks, (y - 0.5, 1), facecolor=color("activations"))
    ax.set(ylabel=f"{len(segments)} segments, the smallest first", ylim=(len(segments), -8), yticks=[], xlabel="bytes")
    figures.set_unit(ax.xaxis, "B")
    figures.legend_below(fig, {"blocks of tensors": "activations", "free": "cell", "fits nowhere": "wrong"})
    return fig
