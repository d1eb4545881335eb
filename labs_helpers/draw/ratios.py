"""A scatter plot of a random study: how much faster ours is than the best baseline, shape by shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

from labs_helpers.draw import figures
from labs_helpers.measure.random_study import geometric_mean

if TYPE_CHECKING:
    import pandas

COLORS = ("blue", "vermillion", "green")
TICKS = (0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 8)


def draw_ratios(
    table: pandas.DataFrame, looks: Mapping[str, tuple[dict[str, Any], str, str]], of: str, operations: str, where: str
) -> Figure:
    """Draw the best baseline's time over ours against the operations: a point per row, a panel per way of timing.

    table: of `RandomStudy.ratios`, with 'flops'. looks: label → (columns' values, colour's name, marker). of: what the
    rows are, for the title. operations: the label of the x axis. where: the end of the title.
    """
    timed = sorted(table["graph"].unique())
    last = table[table["graph"] == timed[-1]]["ratio"]
    fig, axes = figures.new(
        f"{len(last)} random {of}: {geometric_mean(last):.2f} × the best baseline's speed, "
        f"slower at {int((last < 1).sum())}{where}",
        width=10 if len(timed) > 1 else 7.2,
        ncols=len(timed),
        squeeze=False,
        sharey=True,
    )
    for ax, graph in zip(axes[0], timed, strict=True):
        for label, (wanted, color, marker) in looks.items():
            rows = table[table["graph"] == graph]
            for column, value in wanted.items():
                rows = rows[rows[column] == value]
            if len(rows):
                look: dict[str, Any] = {"color": figures.COLORS[color], "marker": marker, "label": label}
                ax.scatter(rows["flops"], rows["ratio"], s=18, alpha=0.75, linewidths=0, **look)
        ax.axhline(1, linestyle=":", color="gray")
        title = "from CUDA graphs" if graph else "as calls, cold L2"
        ax.set(xscale="log", yscale="log", title=title, xlabel=operations)
        ax.yaxis.set_major_locator(FixedLocator(TICKS))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    axes[0][0].set_ylabel("the best baseline's time over ours")
    axes[0][-1].legend(loc="best", fontsize="small")
    return fig
