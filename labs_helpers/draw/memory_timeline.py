"""Draw the bytes alive during a call: those from before the call as bands, those that the call allocates above them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from labs_helpers.draw import figures
from labs_helpers.draw.roles import INK, PAPER, color, pale

_BANDS = (0, 2, 3, 5, 4)  # positions in the series of colors


def draw_memory(timeline: Mapping[str, Any], title: str | None = None, base: Mapping[str, int] | None = None) -> Figure:
    """Return the figure of a timeline of `measure.memory_timeline`, with its marks and its peak.

    base: name → bytes allocated before the call, such as parameters and the optimizer's states, from the bottom up; the
    remainder of `timeline["before"]` is one more band. Raises ValueError if they add up to more than that.
    """
    before, base = timeline["before"], dict(base or {})
    if rest := before - sum(base.values()):
        if rest < 0:
            raise ValueError(f"base adds up to {sum(base.values()):,} bytes, of {before:,} that were there before")
        base["there before"] = rest
    change, alive = np.array(timeline["points"]).T
    fig, ax = figures.new(title, width=9.0, height=3.8)
    end = max(change[-1], 1)
    floor = 0.0
    for (name, nbytes), role in zip(base.items(), _BANDS, strict=False):
        ax.fill_between([0, end], floor, floor + nbytes, color=color(role), alpha=0.45, linewidth=0)
        if nbytes > 0.045 * timeline["peak"]:
            ax.text(end * 0.01, floor + nbytes / 2, name, va="center", fontsize="small")
        else:  # too thin for its name: a curve without a line, named next to the axes
            ax.plot([end], [floor + nbytes / 2], linestyle="none", marker="", color=color(role), label=name)
        floor += nbytes
    # If the call frees memory from before it, the curve drops below the bands: cover them.
    ax.fill_between(change, np.minimum(alive, floor), floor, step="post", color=PAPER, linewidth=0)
    ax.fill_between(change, floor, np.maximum(alive, floor), step="post", color=pale(1, 0.35), linewidth=0)
    ax.step(change, alive, where="post", color=color(1), linewidth=1.2, marker="")
    ax.set(
        xlim=(0, end),
        ylim=(0, 1.22 * timeline["peak"] or 1),
        xlabel="tensors, in the order of allocation and release",
        ylabel="bytes alive",
    )
    figures.set_unit(ax.yaxis, "B")
    ends = [*(at for at, _ in timeline["marks"][1:]), end]
    for (at, name), until in zip(timeline["marks"], ends, strict=False):
        ax.axvline(at, color=INK, linewidth=0.8, linestyle=":")
        ax.text((at + until) / 2, 1.2 * timeline["peak"], name, ha="center", va="top", fontsize="small")
    peak, highest = timeline["peak"], change[int(np.argmax(alive))]
    side = "right" if highest > 0.9 * end else "left" if highest < 0.1 * end else "center"
    ax.plot([highest], [peak], marker="o", color=color(1), markersize=5)
    ax.annotate(
        EngFormatter("B", places=1)(peak), (highest, peak), xytext=(0, 7), textcoords="offset points", ha=side,
        fontsize="small", bbox={"facecolor": PAPER, "linewidth": 0, "pad": 1},
    )  # fmt: skip
    if peak - floor > 0.15 * peak:
        ax.text(0.35 * end, floor + 0.06 * peak, "made during the call", ha="center", fontsize="small")
    figures.label_lines(ax)
    return fig
