"""Actions over time: a row per rank or wrapper, in it one lane below another, in each the actions as bars."""

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
    """An action from start to stop, in the unit of the axis; its colour, and words if they fit in."""

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
    """Draw name → its lanes, from the top down. ends: where a row's line stands, such as the end of its step.
    unit: of the ticks, with SI prefixes. letters: size of the words in the bars, in points."""
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
    for y, lanes in enumerate(rows.values()):
        for number, spans in enumerate(lanes):
            write_in(ax, y - 0.36 + (number + 0.5) * 0.72 / len(lanes), spans, letters)


def draw_spans(
    ax: Axes, y: float, spans: Iterable[Span], height: float, edges: Mapping[str, str] | None = None
) -> None:
    """Draw the bars of one lane, whose middle is at y. edges: colour → that of its bars' edges, by default the ground's
    in a lane of fewer than 60."""
    spans = list(spans)
    for color in dict.fromkeys(span.color for span in spans):
        places = [(span.start, span.stop - span.start) for span in spans if span.color == color]
        edge = PAPER if edges is None and len(spans) < 60 else (edges or {}).get(color, "none")
        ax.broken_barh(places, (y - height / 2, height), facecolor=color, edgecolor=edge, linewidth=0.4)


def finish_rows(ax: Axes, names: Sequence[str]) -> None:
    """Name the rows, the first on top, without grid, ticks or axis beside them."""
    ax.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.6))
    ax.tick_params(axis="y", length=0)
    ax.grid(False, axis="y")
    ax.spines["left"].set_visible(False)


def write_in(ax: Axes, y: float, spans: Iterable[Span], size: float = LETTERS) -> None:
    """Write each span's words into its bar, as far as they fit. Call it when the axes have their limits."""
    spans = [span for span in spans if span.text]
    if not spans:
        return
    figure = cast(Figure, ax.figure)
    figure.draw_without_rendering()  # now the axes have their width
    low, high = ax.get_xlim()
    points = 72 / figure.dpi * ax.get_window_extent().width / (high - low)
    for span in spans:
        left, right = max(span.start, low), min(span.stop, high)
        if text := _fitting(span.text, (right - left) * points, size):
            place: dict[str, Any] = {"ha": "center", "va": "center_baseline", "clip_on": True, "in_layout": False}
            ax.text((left + right) / 2, y, text, fontsize=size, color=text_on(span.color), **place)


def _fitting(text: str, points: float, size: float) -> str:
    """The text, or its beginning and '…', as far as it fits into a bar of this width; nothing where that is little."""
    while text and _width(text, size) > points - 2:
        text = text[:-2] + "…" if len(text) > 4 else ""
    return text


@cache
def _width(text: str, size: float) -> float:
    return float(TextPath((0, 0), text, size=size).get_extents().width)
