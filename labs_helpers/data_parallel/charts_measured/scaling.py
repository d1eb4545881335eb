"""How well more ranks do: efficiency, weak and strong."""

from __future__ import annotations

from typing import Any

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts_measured.looks import new_figure, one_setting, setting_of
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.data_parallel.study.tables import scaling_table
from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted, tick_each

LOOKS = {"weak": ("o", "blue"), "strong": ("s", "vermillion")}


def draw_scaling(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Efficiency against ranks, a panel per link: with as many sequences per rank (weak) and in all (strong);
    dotted, that of as many ranks that do not communicate, which share cores and memory.

    prediction: a Prediction of the weak efficiency in % on the most ranks, in the first panel; one without a number
    draws nothing. ValueError without records.
    """
    found = one_setting(select(rows, "scaling"), "size", "length")
    table = scaling_table(found)
    panels, most = _panels(found), int(table["ranks"].max())
    last = table[(table["ranks"] == most)].drop_duplicates("mode").set_index("mode")["efficiency"]
    told = " and ".join(f"{value:.0%} ({mode})" for mode, value in last.items())
    title = f"On {most} ranks the efficiency is {told}\n{setting_of(found, batch=False)}"
    fig, axes = new_figure(title, 3.6 + 3.4 * len(panels), height=4.2, ncols=len(panels), sharey=True, squeeze=False)
    for ax, (name, of_panel) in zip(axes[0], panels.items(), strict=True):
        for mode, curve in scaling_table(of_panel).groupby("mode", sort=False):
            marker, color = LOOKS[mode]
            look = {"color": figures.COLORS[color]}
            ax.plot(curve["ranks"], curve["efficiency"], marker + "-", label=mode, **look)
            ax.plot(curve["ranks"], curve["alone"], ":", marker="", linewidth=1.4, label=f"{mode}, alone", **look)
        tick_each(ax, of_panel["ranks"], base=2)
        ax.set(xlabel="ranks", ylim=(0, 1.1))
        ax.set_title(name, fontsize="medium")
        ax.yaxis.set_major_formatter("{x:.0%}")
    axes[0][0].set_ylabel("efficiency")
    figures.label_lines(axes[0][-1])
    value = predicted(prediction)
    figures.mark_prediction(axes[0][0], most, value / 100 if value is not None else None)
    return fig


def _panels(rows: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """A run's records under the name of its widest link: on fewer ranks it may have used fewer nodes."""
    asked = rows["asked"].fillna("") if "asked" in rows else pandas.Series("", index=rows.index)
    found = {}
    for _, run in rows.groupby(asked, sort=False):
        widest = run[run["ranks"] == run["ranks"].max()]
        found[links(widest)[0]] = run
    return found
