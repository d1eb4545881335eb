"""Matrices of cells of a few kinds, next to each other: the wrong elements of a tensor, or the content of each rank."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from labs_helpers.draw import figures
from labs_helpers.draw.boxes import bare
from labs_helpers.draw.roles import INK, PAPER, color, text_on


def draw_cells(picture: Any) -> Figure:
    """Draw a picture: `title`, `kinds` (the meaning of a number in a panel → its role), `panels`, `below`, `axes`.

    A panel has `name`, `kinds` (a matrix of numbers, −1 for no cell), `place` (left, right, bottom, top), `texts` and
    `box`, as in course/verdict/picture.py.
    """
    flat = max(panel.kinds.shape[0] for panel in picture.panels) == 1
    written = any(len(panel.texts) for panel in picture.panels)
    rows = max(panel.kinds.shape[0] for panel in picture.panels)
    height = 2.3 if flat else 1.6 + 0.3 * rows if written else 2.9
    width = {1: 5.0, 2: 6.2}.get(len(picture.panels), 7.2)
    fig, axes = figures.panels(picture.title, [panel.name for panel in picture.panels], width, height)
    colors = [to_rgb(color(role)) for role in picture.kinds.values()] + [to_rgb(PAPER)]  # index −1 selects it
    for ax, panel in zip(axes, picture.panels, strict=True):
        ax.imshow(np.array(colors)[panel.kinds], extent=panel.place, aspect="auto", interpolation="nearest")
        bare(ax)
        ax.set(xlabel=picture.axes[1], ylabel=picture.axes[0])
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(MaxNLocator(5 if len(axes) < 4 else 2, integer=True))
        if flat:
            ax.set_yticks([])
        if panel.box:
            left, top, width, down = panel.box
            ax.add_patch(Rectangle((left, top), width, down, fill=False, edgecolor=INK, linewidth=2, clip_on=False))
        for r, row in enumerate(panel.texts):
            for c, text in enumerate(row):
                ink = text_on(to_hex(colors[panel.kinds[r, c]]).upper())
                ax.text(c + 0.5, r + 0.5, text, ha="center", va="center", size=9, color=ink)
        if len(panel.texts):
            ax.set_xticks(np.arange(panel.kinds.shape[1]) + 0.5, list(map(str, range(panel.kinds.shape[1]))))
            ax.set_yticks(np.arange(panel.kinds.shape[0]) + 0.5, list(map(str, range(panel.kinds.shape[0]))))
    present = {int(kind) for panel in picture.panels for kind in np.unique(panel.kinds)}
    named = {name: role for n, (name, role) in enumerate(picture.kinds.items()) if n in present}
    figures.legend_below(fig, named)
    fig.told = ". ".join(f"{panel.name}: {_told(panel, list(picture.kinds))}" for panel in picture.panels)  # type: ignore[attr-defined]
    if picture.below:
        figures.write_below(fig, picture.below)
    return fig


def _told(panel: Any, kinds: list[str]) -> str:
    """Describe a panel in words: its texts row by row, or the position of each kind except the most common one."""
    if len(panel.texts):
        return "; ".join(f"{r}: {' '.join(text or '·' for text in row)}" for r, row in enumerate(panel.texts))
    left, right, bottom, top = panel.place
    height, width = (bottom - top) / panel.kinds.shape[0], (right - left) / panel.kinds.shape[1]
    said = []
    for kind in np.unique(panel.kinds[panel.kinds >= 0]):
        rows, columns = (np.flatnonzero((panel.kinds == kind).any(axis)) for axis in (1, 0))
        spans = [
            f"{name} {first + step * at[0]:.0f} to {first + step * (at[-1] + 1) - 1:.0f}"
            for name, at, first, step in (("rows", rows, top, height), ("columns", columns, left, width))
        ]
        said.append(f"{kinds[kind]} in {', '.join(spans)}")
    return "; ".join(said)
