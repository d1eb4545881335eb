"""Horizontal bars, stacked part by part: what memory holds, what a step is made of."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labs_helpers.data_parallel.planner.accounting import GB
from labs_helpers.draw import figures

COLORS = {  # in the order in which they are stacked
    "parameters": "blue", "gradients": "orange", "optimizer": "green", "buckets": "vermillion", "gathered": "sky",
    "activations": "purple",
    "compute": "blue", "update": "green", "exposed communication": "vermillion",
    "what the hidden communication costs": "orange",
}  # fmt: skip
FARTHEST = 4  # times the capacity: bars end there, with their numbers


def stacked_bars(
    bars: Mapping[str, Mapping[str, float]],
    xlabel: str,
    unit: str,
    title: str,
    pale: Collection[str] = (),
    limit: float | None = None,
) -> tuple[Figure, Axes]:
    """Horizontal bars, the first on top, each with its sum at its end; a legend of the parts below."""
    if not bars:
        raise ValueError("there is nothing to draw: no strategy is possible")
    fig, ax = titled(title, height=1.9 + 0.34 * len(bars))
    names, ends = list(bars), np.zeros(len(bars))
    legend = []
    for part in (part for part in COLORS if any(sizes.get(part) for sizes in bars.values())):
        sizes = np.array([bars[name].get(part, 0.0) for name in names])
        color = figures.COLORS[COLORS[part]]
        drawn = ax.barh(names, sizes, left=ends, color=color, height=0.7)
        for bar, name in zip(drawn, names, strict=True):
            bar.set_alpha(0.35 if name in pale else 1.0)
        ends += sizes
        legend.append(Patch(color=color, label=part))
    longest = ends.max() if limit is None else min(ends.max(), limit)
    ground = {"facecolor": figures.PAPER, "edgecolor": "none", "pad": 1}
    for y, end in enumerate(ends):
        inside = min(end, longest)
        text = _short(end, unit) + (" →" if end > longest else "")
        look: dict[str, Any] = {"textcoords": "offset points", "va": "center", "fontsize": "small", "bbox": ground}
        ax.annotate(text, (inside, y), xytext=(5, 0), annotation_clip=False, **look)
    ax.set(xlabel=xlabel, xlim=(0, 1.14 * longest))
    if limit is not None:
        ax.set_xlim(0, max(1.14 * longest, 1.14 * limit / FARTHEST))
    figures.set_unit(ax.xaxis, unit)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    fig.legend(handles=legend, ncols=min(len(legend), 6), loc="outside lower left", fontsize="small")
    return fig, ax


def titled(title: str, height: float) -> tuple[Figure, Axes]:
    """A figure whose title begins at its left edge, and is broken where it ends."""
    width = 8.4
    lines = "\n".join(textwrap.fill(line, int(10.5 * width)) for line in title.splitlines())
    fig, ax = figures.new(width=width, height=height)
    fig.suptitle(lines, x=0.01, ha="left", fontsize=figures.STYLE["axes.titlesize"])
    return fig, ax


def _short(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / GB:,.0f} GB" if value >= 100 * GB else f"{value / GB:.3g} GB"
    return f"{1e3 * value:,.0f} ms" if value >= 0.1 else f"{1e3 * value:.3g} ms"
