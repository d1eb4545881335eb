"""The time of an all-reduce by its bytes, over each link and on each number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from labs_helpers.data_parallel.charts_measured.looks import new_figure, three
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.data_parallel.study.tables import fits
from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted, recorded_on

COLORS = ("blue", "vermillion", "green", "purple", "orange", "sky")
MARKED = 2**20  # bytes at which a prediction stands


def draw_all_reduce(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Time against bytes, both logarithmic: measured points with a bar of spread, and α + nβ dashed.

    prediction: a Prediction of the milliseconds at 1 MB (2²⁰ bytes); one without a number draws nothing.
    ValueError without records.
    """
    calls = select(rows, "all_reduce")
    costs = fits(rows)
    told = [
        f"{line.link}, {line.ranks} ranks: α = {three(line.alpha_us)} µs, 1/β = {three(1 / line.beta_ns_per_byte)} GB/s"
        for line in costs.itertuples()
        if line.beta_ns_per_byte
    ]
    fig, ax = new_figure(
        f"An all-reduce of n bytes takes about α + nβ{recorded_on(calls)}\n" + "\n".join(told), 8.6, height=5.0
    )
    number = 0
    for link in links(calls):
        for ranks, curve in calls[calls["link"] == link].groupby("ranks"):
            curve = curve.sort_values("bytes")
            color = figures.COLORS[COLORS[number % len(COLORS)]]
            name = f"{link}\n{ranks:.0f} ranks"
            ax.plot(curve["bytes"], 1e-3 * curve["call_ms"], "os^Dv"[number % 5], color=color, label="_measured")
            ax.vlines(curve["bytes"], 1e-3 * curve["call_p20_ms"], 1e-3 * curve["call_p80_ms"], color=color, alpha=0.5)
            cost = costs[(costs["link"] == link) & (costs["ranks"] == ranks)].iloc[0]
            smooth = np.geomspace(curve["bytes"].min(), curve["bytes"].max(), 24)
            seconds = 1e-6 * cost["alpha_us"] + 1e-9 * cost["beta_ns_per_byte"] * smooth
            ax.plot(smooth, seconds, "--", marker="", color=color, label=name)
            number += 1
    ax.set(xscale="log", yscale="log", xlabel="bytes", ylabel="time (slowest rank's median)")
    ax.xaxis.set_major_locator(LogLocator(10, numticks=8))
    for axis, unit in ((ax.xaxis, "B"), (ax.yaxis, "s")):
        figures.set_unit(axis, unit)
    ax.minorticks_off()
    figures.label_lines(ax, gap=2.6)
    value = predicted(prediction)
    figures.mark_prediction(ax, MARKED, 1e-3 * value if value else None)
    return fig
