"""Draw the speedup of overlapping against the share of communication, under Amdahl's bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import setting_of
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.data_parallel.study.tables import FASTER, SHARE, regime_table
from labs_helpers.draw import figures
from labs_helpers.draw.roles import INK, color, marker
from labs_helpers.planner.step_time import amdahl

MARKED = 0.5  # the share at which a prediction is drawn


def draw_regimes(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Draw the fastest overlapping wrapper's speedup over naive against the share of communication in the naive step.

    Each point is a batch size, and each marker a link. A dashed line shows Amdahl's bound, and a shaded corner the
    settings in which the usual headline holds.

    prediction: a Prediction of the speedup if half of the naive step is communication; one without a number is not
    drawn. ValueError without records.
    """
    table = regime_table(rows)
    fig, (ax,) = figures.panels(finding(table), [""], 8.4, 4.8)
    top = max(2.0, 1.1 * table["× naive"].max())
    share = np.linspace(0, 1 - 1 / (1.02 * top), 14)  # few pieces, because label_points checks each
    ax.plot(share, [amdahl(s) for s in share], "--", marker="", color=color("limit"), label="Amdahl's bound")
    corner: dict[str, Any] = {"color": color("claim"), "alpha": 0.18, "linewidth": 0, "label": "the headline holds"}
    ax.fill_between([SHARE, 1], FASTER, top, **corner)
    for role, link in enumerate(links(table)):
        here = table[table["link"] == link].sort_values("communication")
        # Nothing was measured between two batches, so no line connects the points.
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
    setting = setting_of(select(rows, "wrapper"), batch=False)
    figures.write_below(fig, f"Beside each point: sequences × tokens per rank; {setting}")
    return fig


def finding(table: pandas.DataFrame) -> str:
    """Say in how many settings the usual headline holds. table: the return value of `regime_table`."""
    return f"The headline holds in {table['headline'].sum()} of {len(table)} settings"
