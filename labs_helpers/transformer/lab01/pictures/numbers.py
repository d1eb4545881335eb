"""Draw what numbers with few bits lose: small gradients, and small updates of a weight."""

from __future__ import annotations

import pandas
from matplotlib.figure import Figure
from matplotlib.ticker import MultipleLocator
from torch import Tensor

from labs_helpers.draw import figures
from labs_helpers.draw.roles import color
from labs_helpers.transformer.lab01.precision import FLOAT16_END, FLOAT16_LEAST, FLOAT16_NORMAL, exponents, in_float16

RANGES = {  # of float16: the power of two at which it ends, role
    "flushed to 0": (FLOAT16_LEAST - 1, 1),  # above, the least number is nearer than 0
    "fewer bits": (FLOAT16_NORMAL, 4),
    "all 11 bits": (FLOAT16_END, 2),
    "inf": (FLOAT16_END + 3, 1),
}


def draw_gradients(gradient: Tensor, scale: float = 2.0**16, what: str = "activations") -> Figure:
    """Draw how many gradients have each power of two, as they are and times `scale`, over float16's range.

    gradient: (n,), in float32; zeros are left out. what: their name.
    """
    flushed = in_float16({what: gradient}, (1, scale))["flushed to 0"].tolist()
    lost = [f"{zero:.{1 if zero > 0.001 else 3}%}" if zero else "none" for zero in flushed]
    fig, ax = figures.new(f"In float16 {lost[0]} of the gradients become 0; scaled, {lost[1]}", height=4.2)
    times = {"as they are": (1.0, "result", lost[0]), f"times {scale:,.0f}": (scale, "ours", lost[1])}
    shares = {name: exponents(gradient * factor) for name, (factor, _, _) in times.items()}
    left = min(FLOAT16_LEAST - 10, *(share[share > 1e-4].index.min() - 1 for share in shares.values()))
    right = RANGES["inf"][0]
    top = 1.25 * max(share.max() for share in shares.values())
    start = left
    for name, (end, role) in RANGES.items():
        ax.axvspan(start, end, color=color(role), alpha=0.13, linewidth=0)
        ax.text((start + end) / 2, 0.985 * top, name, ha="center", va="top")
        start = end
    for name, (_, role, zero) in times.items():
        share = shares[name].reindex(range(left, right + 1), fill_value=0.0)
        look = {"color": color(role), "linewidth": 2, "label": f"{name}: {zero} become 0"}
        ax.stairs(share.to_numpy(), [*share.index, right + 1], **look)
    ax.set(xlim=(left, right), ylim=(0, top), xlabel="power of two", ylabel="share of the gradients")
    ax.yaxis.set_major_locator(MultipleLocator(0.05))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.xaxis.set_major_formatter(lambda k, _: f"2$^{{{k:.0f}}}$")
    figures.legend_below(fig)
    return fig


def draw_lost_updates(table: pandas.DataFrame, change: float = -0.001) -> Figure:
    """Draw a weight over the steps of an update, with one curve per way to store it.

    table: from precision.lost_updates(steps, change).
    """
    stuck = [str(name) for name, values in table.items() if values.iloc[-1] == values.iloc[0]]
    title = f"In {' and '.join(stuck) or 'no dtype'} all {len(table) - 1} steps of {change:g} are lost"
    fig, ax = figures.new(title.replace("-", "−"), height=3.3)
    for name, values in table.items():
        ax.plot(table.index, values, marker="", drawstyle="steps-post", linewidth=1.6, label=name)
    ax.set(xlabel="steps", ylabel="weight")
    figures.label_lines(ax)
    return fig
