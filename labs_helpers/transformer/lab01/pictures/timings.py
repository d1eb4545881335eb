"""Draw how a timing goes wrong: the results of several methods for the same step."""

from __future__ import annotations

from collections.abc import Mapping

import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.roles import INK, PAPER, color

RIGHT = 1.05  # a timing off by less is right


def draw_wrong_timings(measured: Mapping[str, float], truth: float | Mapping[str, float]) -> Figure:
    """Draw what timing methods measure, as factors of the true time on a logarithmic axis, the most wrong at the ends.

    measured: method → ms. truth: ms, or method → ms if the methods timed different steps. A time of 0 reaches the left
    edge. ValueError for a true time that is not positive, or without measurements.
    """
    truths = dict(truth) if isinstance(truth, Mapping) else dict.fromkeys(measured, truth)
    if not measured or not all(truths[name] > 0 for name in measured):
        raise ValueError("there is nothing to draw without a time measured, and a true time above 0 for each")
    factors = pandas.Series({name: ms / truths[name] for name, ms in measured.items()}, dtype=float).sort_values()
    seen = factors[factors > 0]
    low, high = min(seen.min(), 0.8), max(seen.max(), 1.25)
    reach = (high / low) ** 0.22
    low, high = low / reach, high * reach
    wrong = factors[(factors < 1 / RIGHT) | (factors > RIGHT)]
    title = "Every way gives the true time"
    if len(wrong):
        title = " to ".join(dict.fromkeys(_times(factor) for factor in (wrong.iloc[0], wrong.iloc[-1])))
        title = f"Wrong ways give {title} the true time"
    fig, ax = figures.new(title, 9, 1.3 + 0.42 * len(factors))
    ends = factors.where(factors > 0, low)
    ax.barh(factors.index, ends - 1, left=1, color=color("wrong"))
    right = factors.drop(wrong.index)
    ax.plot(0 * right + 1, right.index, "o", markersize=9, color=color("right"))
    for y, (factor, end) in enumerate(zip(factors, ends, strict=True)):
        align, offset = ("left", 8) if factor > 1 / RIGHT or factor == 0 else ("right", -8)
        look = {"ha": align, "color": PAPER if factor == 0 else INK}  # 0 stands in its bar
        ax.annotate(_times(factor), (end, y), (offset, 0), textcoords="offset points", va="center", **look)
    ax.axvline(1, color=INK, linewidth=1.2)
    ax.set(xscale="log", xlim=(low, high), xlabel="measured / true time")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    ax.grid(False, axis="y")
    ax.invert_yaxis()
    return fig


def _times(factor: float) -> str:
    return f"{factor:.2g}×" if factor < 10 else f"{factor:.0f}×"
