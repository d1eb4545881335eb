"""When overlapping is worth it: its speed-up by the share of communication, under Amdahl's bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import setting_of
from labs_helpers.data_parallel.planner.step_time import amdahl
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.data_parallel.study.tables import FASTER, SHARE, regime_table
from labs_helpers.draw import figures
from labs_helpers.draw.roles import INK, color, marker

MARKED = 0.5  # the share at which a prediction stands


def draw_regimes(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """How many times as fast as the naive step the fastest overlapping wrapper is, by the share of communication in
    the naive step: a point per batch, a marker per link; Amdahl's bound above, and the corner where both numbers of
    the usual headline hold.

    prediction: a Prediction of the speed-up where half of the naive step is communication; one without a number draws
    nothing. ValueError without records.
    """
    table = regime_table(rows)
    fig, (ax,) = figures.panels(f"{finding(table)}\n{setting_of(select(rows, 'wrapper'), batch=False)}", [""], 8.4, 4.8)
    top = max(2.0, 1.1 * table["× naive"].max())
    share = np.linspace(0, 1 - 1 / (1.02 * top), 14)  # label_points looks at every piece
    ax.plot(share, [amdahl(s) for s in share], "--", marker="", color=color("limit"), label="Amdahl's bound")
    corner: dict[str, Any] = {"color": color("claim"), "alpha": 0.18, "linewidth": 0, "label": "the headline holds"}
    ax.fill_between([SHARE, 1], FASTER, top, **corner)
    for role, link in enumerate(links(table)):
        here = table[table["link"] == link].sort_values("communication")
        # No line between points: what lies between two batches was not measured.
        ax.plot(here["communication"], here["× naive"], marker(role), color=color(role), label=link)
    ax.axhline(1, color=INK, linewidth=0.8, label="_none")
    ax.set(xlim=(0, 1), ylim=(min(0.8, 0.95 * table["× naive"].min()), top), ylabel="naive step / overlapped step")
    ax.set_xlabel("share of communication in the naive step")
    ax.xaxis.set_major_formatter("{x:.0%}")
    ax.yaxis.set_major_formatter("{x:.1f}×")
    points = {
        f"{row['batch']:.0f} × {row['length']:.0f}{' ' * number}": (row["communication"], row["× naive"])
        for number, (_, row) in enumerate(table.iterrows())
    }
    figures.label_points(ax, points, fontsize="small")
    figures.mark_prediction(ax, MARKED, prediction)
    figures.legend_below(fig)
    return fig


def finding(table: pandas.DataFrame) -> str:
    """In how many settings both numbers of the usual headline hold, in words. table: of `regime_table`."""
    return f"Both numbers of the headline hold in {table['headline'].sum()} of {len(table)} settings"
