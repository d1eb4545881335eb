"""Draw the efficiency of weak and strong scaling."""

from __future__ import annotations

from typing import Any

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import one_setting, setting_of
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.data_parallel.study.tables import scaling_table
from labs_helpers.draw import figures
from labs_helpers.draw.curves import Curves, percent, tick_each

MODES = Curves({"weak": 0, "weak, alone": (0, ""), "strong": 1, "strong, alone": (1, "")})


def draw_scaling(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Draw efficiency against ranks, one panel per link: a fixed batch per rank (weak) or for all ranks (strong).

    Dotted lines show the same ranks without communication, when they still share cores and memory. prediction: a
    Prediction in % of the weak efficiency on the most ranks, in the first panel; one without a number is not drawn.
    ValueError without records.
    """
    found = one_setting(select(rows, "scaling"), "size", "length")
    table = scaling_table(found)
    panels, most = _panels(found), int(table["ranks"].max())
    last = table[(table["ranks"] == most)].drop_duplicates("mode").set_index("mode")["efficiency"]
    told = " and ".join(f"{value:.0%} ({mode})" for mode, value in last.items())
    title = f"On {most} ranks, the efficiency is {told}"
    fig, axes = figures.panels(title, panels, 3.6 + 3.4 * len(panels), sharey=True)
    for ax, of_panel in zip(axes, panels.values(), strict=True):
        for mode, curve in scaling_table(of_panel).groupby("mode", sort=False):
            MODES.plot(ax, mode, curve["ranks"], curve["efficiency"])
            MODES.plot(ax, f"{mode}, alone", curve["ranks"], curve["alone"], linestyle=":", linewidth=1.4)
        tick_each(ax, of_panel["ranks"], base=2, xlabel="ranks")
        ax.set_ylim(0, 1.1)
        percent(ax)
    axes[0].set_ylabel("efficiency")
    figures.write_below(fig, f"alone: without communication; {setting_of(found, batch=False)}")
    figures.label_lines(axes[-1])
    figures.mark_prediction(axes[0], most, prediction, scale=0.01)
    return fig


def _panels(rows: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """Group the records by run, under the link of the run's most ranks; fewer ranks may use fewer nodes."""
    asked = rows["asked"].fillna("") if "asked" in rows else pandas.Series("", index=rows.index)
    found = {}
    for _, run in rows.groupby(asked, sort=False):
        widest = run[run["ranks"] == run["ranks"].max()]
        found[links(widest)[0]] = run
    return found
