"""Draw pipelines: timelines with one row per rank, and the stashes that each rank holds over time."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.lanes import Span, draw_lanes
from labs_helpers.draw.roles import color, pale
from labs_helpers.pipeline.schedule import BACKWARD, FORWARD, INPUT, WEIGHT
from labs_helpers.pipeline.simulate import Timeline

ROLES = {FORWARD: "forward", BACKWARD: "backward", INPUT: "input gradient", WEIGHT: "weight gradient"}
NAMES = {
    FORWARD: "forward", BACKWARD: "backward", INPUT: "gradient of the input", WEIGHT: "gradients of the weights",
}  # fmt: skip
PALE = 0.45  # how much of its color a rank's second chunk has


def draw_timelines(timelines: Sequence[Timeline], title: str, unit: str | None = None) -> Figure:
    """Draw timelines below one another on one time axis: a row per rank, the micro-batch's number in each bar, and
    nothing where the rank waits. The chunks of an interleaved schedule alternate between full and pale colors.

    unit: of the time, such as "s", with SI prefixes; None for times in passes.
    """
    height = 0.9 + sum(0.55 + 0.3 * timeline.ranks for timeline in timelines)
    fig, axes = figures.new(title, 9.0, height, nrows=len(timelines), squeeze=False, sharex=True)
    last = max(timeline.seconds for timeline in timelines)
    for ax, timeline in zip(axes[:, 0], timelines, strict=True):
        ax.set_title(f"{timeline.name}: {timeline.bubble_share:.0%} of the time is bubble", fontsize=8.5, loc="left")
        _draw(ax, timeline, last, unit)
        ax.label_outer()
    used = {bar.action.kind for timeline in timelines for bar in timeline.bars}
    figures.legend_below(fig, {NAMES[kind]: ROLES[kind] for kind in ROLES if kind in used})
    return fig


def _draw(ax: Axes, timeline: Timeline, last: float, unit: str | None) -> None:
    begin = min(bar.start for bar in timeline.bars)
    rows = {}
    for rank in range(timeline.ranks):
        bars = [bar for bar in timeline.bars if bar.rank == rank]
        first = min(bar.action.stage for bar in bars)
        rows[f"rank {rank}"] = [[
            Span(bar.start - begin, bar.stop - begin, _shade(bar.action.kind, bar.action.stage != first),
                 str(bar.action.micro))
            for bar in bars
        ]]  # fmt: skip
    ax.set_xlim(0, last)
    draw_lanes(ax, rows, xlabel="time" if unit else "time, in forward passes of a stage", unit=unit)
    ax.set_xlim(0, last)


def _shade(kind: str, later_chunk: bool) -> str:
    role = ROLES[kind]
    return to_hex(pale(role, PALE)) if later_chunk else color(role)


def draw_stashes(timelines: Sequence[Timeline], title: str, rank: int = 0, unit: str | None = None) -> Figure:
    """Draw the stashes that one rank holds over time, one curve per timeline."""
    fig, ax = figures.new(title, 7.2, 3.2)
    for number, timeline in enumerate(timelines):
        begin = min(bar.start for bar in timeline.bars)
        curve = timeline.stashes(rank)
        times, held = zip((0.0, 0), *((time - begin, count) for time, count in curve), strict=True)
        ax.step(times, held, where="post", marker="", color=color(number), label=timeline.name)
    ax.set(xlabel="time" if unit else "time, in forward passes of a stage", ylabel=f"stashes on rank {rank}")
    if unit:
        figures.set_unit(ax.xaxis, unit)
    ax.set_ylim(0, None)
    figures.legend_below(fig)
    return fig
