"""A scatter plot of a random study: how much faster our kernel is than the best baseline, shape by shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

from labs_helpers.draw import figures
from labs_helpers.draw.curves import level
from labs_helpers.draw.roles import Role, color, marker
from labs_helpers.measure.random_study import geometric_mean

if TYPE_CHECKING:
    import pandas

TICKS = [0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 8]


def draw_ratios(
    table: pandas.DataFrame, looks: Mapping[str, tuple[dict[str, Any], Role, Role]], of: str, operations: str, end: str
) -> Figure:
    """Draw the best baseline's time over ours against the operations: one point per row, one panel per timing method.

    table: of `RandomStudy.ratios`, with 'flops'. looks: label → (columns' values, the role that gives the points'
    color, the role that gives their marker). of: the rows' name in the title. operations: the label of the x axis. end:
    the end of the note, the machine.
    """
    panels = {"from CUDA graphs" if graph else "as calls, cold L2": rows for graph, rows in table.groupby("graph")}
    last = [*panels.values()][-1]["ratio"]
    speedup, slower = geometric_mean(last), int((last < 1).sum())
    title = f"{speedup:.2f}× the best baseline's speed; slower at {slower} of {len(last)} {of}"
    fig, axes = figures.panels(title, panels, 10 if len(panels) > 1 else 7.2, sharey=True)
    figures.write_below(fig, ", ".join(["speed as a geometric mean", end.removeprefix(", ")]).removesuffix(", "))
    for ax, panel in zip(axes, panels.values(), strict=True):
        for label, (wanted, role, marked) in looks.items():
            rows = panel
            for column, value in wanted.items():
                rows = rows[rows[column] == value]
            if len(rows):
                look: dict[str, Any] = {"color": color(role), "marker": marker(marked), "label": label}
                ax.scatter(rows["flops"], rows["ratio"], s=18, alpha=0.75, linewidths=0, **look)
        level(ax, 1, role="aside", style=":")
        ax.set(xscale="log", yscale="log", xlabel=operations)
        ax.yaxis.set_major_locator(FixedLocator(TICKS))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("speedup over the best baseline")
    axes[-1].legend(loc="best", fontsize="small")
    return fig
