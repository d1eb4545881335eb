"""Boxes with text: ranks, tiles, the parts of a GPU, chunks of a message."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle


def draw_box(
    ax: Axes,
    corner: tuple[float, float],
    width: float,
    height: float,
    ground: Any = "none",
    text: str = "",
    *,
    edge: str = "none",
    size: float | str | None = None,
    ink: str | None = None,
    **style: Any,
) -> None:
    """Draw a filled box, given its corner, with centered text.

    ground, edge, ink: colors of the box, its edge and the text. size: of the text. style: of the box, as for
    `Rectangle`.
    """
    ax.add_patch(Rectangle(corner, width, height, facecolor=ground, edgecolor=edge, **style))
    if text:
        middle = corner[0] + width / 2, corner[1] + height / 2
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": size, "color": ink}
        ax.text(*middle, text, **{name: value for name, value in look.items() if value is not None})


def draw_arrow(
    ax: Axes, start: tuple[float, float], end: tuple[float, float], color: str, style: str = "-|>", **arrow: Any
) -> None:
    """Draw an arrow from start to end. style: '-|>', or '<->' for both directions."""
    props = {"arrowstyle": style, "color": color, "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0} | arrow
    ax.annotate("", end, start, arrowprops=props)


def bare(ax: Axes) -> None:
    """Remove the grid, tick marks and frame from the axes, but keep the tick labels."""
    ax.grid(False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
