"""Many measured ratios over the size of the work: a point per shape, a panel per way of timing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullFormatter, StrMethodFormatter

from labs_helpers.draw import figures
from labs_helpers.draw.curves import level
from labs_helpers.draw.roles import color, marker

if TYPE_CHECKING:
    import pandas

TICKS = [0.125, 0.25, 0.5, 0.7, 1, 1.4, 2, 3, 4, 8]


def draw_ratios(table: pandas.DataFrame, kinds: Iterable[str], title: str, xlabel: str, ylabel: str) -> Figure:
    """The figure of a table with the columns `shape` (one of kinds), `flops`, `ratio`, `graph` (timed from CUDA graphs)
    and, where there are several, `direction`, whose markers differ; both axes logarithmic, a line at 1."""
    panels = {"from CUDA graphs" if graph else "as calls, cold L2": rows for graph, rows in table.groupby("graph")}
    fig, axes = figures.panels(title, panels, 10 if len(panels) > 1 else 7.2, sharey=True)
    for ax, panel in zip(axes, panels.values(), strict=True):
        for role, kind in enumerate(kinds):
            found = panel[panel["shape"] == kind]
            parts = found.groupby("direction", sort=False) if "direction" in found else [("", found)]
            for number, (direction, rows) in enumerate(parts):
                look: dict[str, Any] = {"color": color(role), "marker": marker(3 * number if direction else role)}
                label = f"{kind}, {direction}" if direction else kind
                ax.scatter(rows["flops"], rows["ratio"], s=18, alpha=0.75, linewidths=0, label=label, **look)
        level(ax, 1, role="aside", style=":")
        ax.set(xscale="log", yscale="log", xlabel=xlabel)
        ax.yaxis.set_major_locator(FixedLocator(TICKS))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel(ylabel)
    axes[-1].legend(loc="best", fontsize="small")
    return fig
