"""Horizontal stacked bars, the first at the top: the parts of a step's time, or of the memory in use."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from labs_helpers.draw import figures
from labs_helpers.draw.roles import INK, PAPER, Role, color

FLOOR = "no synchronisation"  # name of the part that `over_floor` splits off
Parts = Mapping[str, float]


def draw_bars(
    ax: Axes,
    bars: Mapping[str, float] | Mapping[str, Parts],
    roles: Role | Mapping[str, Role] = "ours",
    texts: Mapping[str, str] | None = None,
    *,
    spread: Mapping[str, tuple[float, float]] | None = None,
    names: Sequence[str] = (),
    unit: str | None = None,
    xlabel: str = "",
    room: float = 1.05,
    height: float = 0.62,
    shift: float = 0.0,
    pale: Collection[str] = (),
    ticks: bool = True,
) -> float:
    """Draw name → length, or name → {part: length}; return the end of the longest bar.

    roles: one for all bars, or per part, or per bar. texts: name → text after the bar's end. spread: name → the ends of
    a line over the bar. names: the rows, by default those of `bars`; panels that share rows may leave some empty. unit:
    of the ticks, with SI prefixes. room: length of the axis, in lengths of the longest bar. shift: offset of the bars
    in their rows, to draw two per row. ticks=False: no x axis, for bars with numbers.
    """
    names, longest = list(names or bars), 0.0
    for name, parts in bars.items():
        y, end = names.index(name) + shift, 0.0
        for part, length in (parts if isinstance(parts, Mapping) else {"": parts}).items():
            role = (roles.get(part, roles.get(name, "aside"))) if isinstance(roles, Mapping) else roles
            look: dict[str, Any] = {"color": color(role), "alpha": 0.35 if name in pale else 1.0}
            ax.barh(y, length, left=end, height=height, **look)
            end += length
        if spread and name in spread:
            ax.hlines(y, *spread[name], color=INK, linewidth=1.2)
            end = max(end, spread[name][1])
        if text := (texts or {}).get(name, ""):
            write_at_end(ax, end, y, text)
        longest = max(longest, end)
    ax.set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.5, -0.5), xlabel=xlabel)
    ax.set_xlim(0, room * longest)
    ax.grid(False, axis="y")
    if unit is not None:
        figures.set_unit(ax.xaxis, unit)
    ax.locator_params(axis="x", nbins=5)
    if not ticks:
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        ax.grid(False)
    return longest


def over_floor(floor: float, step: float, rest: str) -> dict[str, float]:
    """Split a step into two parts: the time that it takes without communication, and the rest, under the name
    `rest`."""
    floor = floor if floor == floor else 0.0  # NaN if it was not measured
    return {FLOOR: min(floor, step)} | ({rest: max(0.0, step - floor)} if rest != FLOOR else {})


def write_at_end(ax: Axes, x: float, y: float, text: str) -> None:
    """Write text to the right of a bar's end, on the figure's background."""
    ground = {"facecolor": PAPER, "edgecolor": "none", "pad": 1}
    look: dict[str, Any] = {"va": "center", "fontsize": "small", "bbox": ground, "annotation_clip": False}
    ax.annotate(text, (x, y), xytext=(5, 0), textcoords="offset points", **look)


def mark_bar(ax: Axes, x: float | Sequence[float], y: float, marker: str = "D") -> None:
    """Draw a hollow mark on a bar, such as the value of a formula; '|' for each of several counts."""
    xs = [x] if isinstance(x, (int, float)) else list(x)
    look: dict[str, Any] = {"markersize": 14} if marker == "|" else {"markersize": 7, "markerfacecolor": "none"}
    ax.plot(xs, [y] * len(xs), marker, color=color("formula"), markeredgewidth=1.6, label="_mark", **look)


def predict_bar(ax: Axes, x: float | None, y: float) -> None:
    """Draw a predicted length as a triangle below its bar; None draws nothing."""
    if x is not None:
        ax.plot([x], [y + 0.38], "^", color=color("formula"), markersize=9, label="_prediction")
        look: dict[str, Any] = {"va": "center", "fontsize": "small", "style": "italic"}
        ax.annotate("your prediction", (x, y + 0.38), xytext=(7, 0), textcoords="offset points", **look)
