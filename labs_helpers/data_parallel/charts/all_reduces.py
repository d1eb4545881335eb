"""The time of an all-reduce by its bytes, over each link and on each number of ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.data_parallel.study.tables import fits
from labs_helpers.draw import figures
from labs_helpers.draw.curves import log_bytes, recorded_on
from labs_helpers.draw.roles import color, marker
from labs_helpers.draw.words import three

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
    title = f"An all-reduce of n bytes takes about α + nβ{recorded_on(calls)}\n" + "\n".join(told)
    fig, (ax,) = figures.panels(title, [""], 8.6, 5.0)
    groups = [(link, *group) for link in links(calls) for group in calls[calls["link"] == link].groupby("ranks")]
    for role, (link, ranks, curve) in enumerate(groups):
        curve = curve.sort_values("bytes")
        middle, low, high = (1e-3 * curve[f"call{part}_ms"] for part in ("", "_p20", "_p80"))
        ax.plot(curve["bytes"], middle, marker(role), color=color(role), label="_measured")
        ax.vlines(curve["bytes"], low, high, color=color(role), alpha=0.5)
        cost = costs[(costs["link"] == link) & (costs["ranks"] == ranks)].iloc[0]
        smooth = np.geomspace(curve["bytes"].min(), curve["bytes"].max(), 24)
        seconds = 1e-6 * cost["alpha_us"] + 1e-9 * cost["beta_ns_per_byte"] * smooth
        ax.plot(smooth, seconds, "--", marker="", color=color(role), label=f"{link}\n{ranks:.0f} ranks")
    log_bytes(ax)
    ax.set_ylabel("time (slowest rank's median)")
    figures.label_lines(ax, gap=2.6)
    figures.mark_prediction(ax, MARKED, prediction, scale=1e-3)
    return fig
