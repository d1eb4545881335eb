"""Actions over time: one row per rank or wrapper, with several lanes in each row, and actions as bars."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, cast

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.textpath import TextPath

from labs_helpers.draw import figures
from labs_helpers.draw.roles import INK, PAPER, text_on

LETTERS = 6.5  # points


class Span(NamedTuple):
    """An action from start to stop, in the unit of the axis, with its color, and text that is shown if it fits."""

    start: float
    stop: float
    color: str
    text: str = ""


def draw_lanes(
    ax: Axes,
    rows: Mapping[str, Sequence[Sequence[Span]]],
    ends: Mapping[str, float] | None = None,
    *,
    xlabel: str = "time",
    unit: str | None = None,
    letters: float = LETTERS,
) -> None:
    """Draw name → its lanes, from top to bottom. ends: position of a row's line, such as the end of its step. unit:
    of the ticks, with SI prefixes. letters: text size in the bars, in points."""
    for y, (name, lanes) in enumerate(rows.items()):
        height = 0.72 / len(lanes)
        for number, spans in enumerate(lanes):
            draw_spans(ax, y - 0.36 + (number + 0.5) * height, spans, height - 0.02 * (len(lanes) > 1))
        if ends and name in ends:
            ax.vlines(ends[name], y - 0.42, y + 0.42, color=INK, linewidth=1.2)
    ax.set_xlim(0, None)
    finish_rows(ax, list(rows))
    ax.set(xlabel=xlabel)
    if unit is not None:
        figures.set_unit(ax.xaxis, unit)
    write_in(
        ax,
        (
            (y - 0.36 + (number + 0.5) * 0.72 / len(lanes), spans)
            for y, lanes in enumerate(rows.values())
            for number, spans in enumerate(lanes)
        ),
        letters,
    )


def draw_spans(
    ax: Axes, y: float, spans: Iterable[Span], height: float, edges: Mapping[str, str] | None = None
) -> None:
    """Draw the bars of one lane, centered at y. edges: color → color of the bars' edges; by default the background's
    in a lane with fewer than 60 bars."""
    spans = list(spans)
    for color in dict.fromkeys(span.color for span in spans):
        places = [(span.start, span.stop - span.start) for span in spans if span.color == color]
        edge = PAPER if edges is None and len(spans) < 60 else (edges or {}).get(color, "none")
        ax.broken_barh(places, (y - height / 2, height), facecolor=color, edgecolor=edge, linewidth=0.4)


def finish_rows(ax: Axes, names: Sequence[str]) -> None:
    """Label the rows, the first at the top, without grid, ticks or frame."""
    ax.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)


def write_in(ax: Axes, rows: Iterable[tuple[float, Iterable[Span]]], size: float = LETTERS) -> None:
    """Write each span's text into its bar as far as it fits. rows: (y, spans). Call this once the axes have their
    limits."""
    written = [(y, span) for y, spans in rows for span in spans if span.text]
    if not written:
        return
    figure = cast(Figure, ax.figure)
    figure.draw_without_rendering()  # now the axes have their width
    low, high = ax.get_xlim()
    points = 72 / figure.dpi * ax.get_window_extent().width / (high - low)
    for y, span in written:
        left, right = max(span.start, low), min(span.stop, high)
        if text := _fitting(span.text, (right - left) * points, size):
            place: dict[str, Any] = {"ha": "center", "va": "center_baseline", "clip_on": True, "in_layout": False}
            ax.text((left + right) / 2, y, text, fontsize=size, color=text_on(span.color), **place)


def _fitting(text: str, points: float, size: float) -> str:
    """Return the text, or its beginning and '…', as far as it fits into a bar of this width; '' if that would be too
    little."""
    while text and _width(text, size) > points - 2:
        text = text[:-2] + "…" if len(text) > 4 else ""
    return text


@cache
def _width(text: str, size: float) -> float:
    return float(TextPath((0, 0), text, size=size).get_extents().width)
