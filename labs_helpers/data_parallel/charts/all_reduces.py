"""Draw the time of an all-reduce against its bytes, per link and number of ranks."""

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

MARKED = 2**20  # bytes at which a prediction is drawn


def draw_all_reduce(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Draw time against bytes on log axes: measured medians with their spread, and α + nβ as a dashed line.

    prediction: a Prediction in milliseconds at 1 MiB; one without a number is not drawn.
    ValueError without records.
    """
    calls = select(rows, "all_reduce")
    costs = fits(rows)
    told = [
        f"{line.link}, {line.ranks} ranks: α = {three(line.alpha_us)} µs, 1/β = {three(1 / line.beta_ns_per_byte)} GB/s"
        for line in costs.itertuples()
        if line.beta_ns_per_byte
    ]
    fig, (ax,) = figures.panels("An all-reduce of n bytes takes about α + nβ", [""], 8.6, 5.0)
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
    figures.write_below(fig, "; ".join(told) + recorded_on(calls))
    figures.label_lines(ax, gap=2.6)
    figures.mark_prediction(ax, MARKED, prediction, scale=1e-3)
    return fig
