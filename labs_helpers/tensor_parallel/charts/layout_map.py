"""The fastest layout by the tokens of a step and the link between the nodes, predicted and measured."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.tensor_parallel.predict import communication_seconds, config_of, costs
from labs_helpers.tensor_parallel.records import links, select, variant_of
from labs_helpers.transformer.charts.layout import new_figure

COLORS = ("sky", "green", "orange", "vermillion", "purple", "blue")
HOW = {"scheme": "megatron", "sequence_parallel": False, "overlap": False}
RATES = np.geomspace(0.05, 100, 80)  # Gb/s
POINTS = 80  # along the tokens


@beside_yours("tensor-parallel")
def draw_map(rows: pandas.DataFrame) -> Figure:
    """Which layout is predicted to be the fastest, by the tokens of a step and by the rate of the link between the
    nodes, as coloured regions; and which one was, as circles where it was measured.

    α is that of the fastest measured link between nodes; compute alone is taken to be a straight line in the tokens
    through its shortest and its longest measured length. ValueError without steps of two lengths over such a link.
    """
    between = [link for link in links(rows) if (select(rows, "step", link=link)["nodes"] > 1).all()]
    if not between:
        raise ValueError("no records of steps on several nodes")
    table = select(rows, "step", link=between[-1], **HOW)
    lengths = sorted(set(table["length"].astype(int)))
    if len(lengths) < 2:
        raise ValueError(f"records of steps of two lengths are needed; all of these have {lengths[0]} tokens")
    layouts = [variant_of(row) for _, row in table[table["length"] == lengths[0]].iterrows()]
    axis = np.geomspace(lengths[0] / 2, 2 * lengths[-1], POINTS)
    times = np.stack(
        [
            _predicted(rows, table[[variant_of(row) == layout for _, row in table.iterrows()]], axis)
            for layout in layouts
        ]
    )
    winner = times.argmin(axis=0)
    measured = {}
    for link in between:
        for length in lengths:
            steps = select(rows, "step", link=link, length=length, **HOW)
            rate = float(rows[(rows["link"] == link) & (rows["kind"] == "link")]["rate_Gbps"].iloc[-1])
            measured[length, rate] = variant_of(steps.loc[steps["step_ms"].idxmin()])
    batch = int(table["batch"].iloc[0])
    agree = sum(
        layouts[winner[np.abs(RATES - rate).argmin(), np.abs(axis - length).argmin()]] == found
        for (length, rate), found in measured.items()
    )
    model = f"{table['layers'].iloc[0]:.0f} layers of width {table['width'].iloc[0]:.0f}"
    few, many = (layouts[winner[len(RATES) // 2, column]] for column in (0, -1))
    ends = f"{few} at every number of tokens" if few == many else f"{few} with few tokens, {many} with many"
    fig, axes = new_figure(
        f"Predicted to be the fastest: {ends}; at {agree} of {len(measured)} measured points the prediction is right\n"
        f"{batch} sequences, {model}{recorded_on(table)}",
        width=8.4,
        height=4.8,
        squeeze=False,
    )
    ax = axes[0][0]
    colors = [figures.COLORS[name] for name in COLORS[: len(layouts)]]
    pale = ListedColormap([to_rgba(color, 0.45) for color in colors])
    ax.pcolormesh(batch * axis, RATES, winner, cmap=pale, vmin=0, vmax=len(layouts) - 1, shading="nearest", linewidth=0)
    for (length, rate), found in measured.items():
        ax.plot(
            [batch * length], [rate], "o", markersize=13, color=colors[layouts.index(found)], markeredgecolor="black"
        )
    ax.set(xscale="log", yscale="log", xlabel="tokens of a step", ylabel="link between the nodes")
    ax.set_xticks([batch * length for length in lengths], [f"{batch * length:,}" for length in lengths])
    ax.minorticks_off()
    ax.yaxis.set_major_formatter("{x:g} Gb/s")
    ax.grid(False)
    there = sorted({*winner.ravel(), *(layouts.index(found) for found in measured.values())})
    patches = [Patch(facecolor=colors[i], label=str(layouts[i])) for i in there]
    circle = Line2D([], [], marker="o", color="white", markeredgecolor="black", markersize=9, label="measured")
    fig.legend(handles=[*patches, circle], loc="outside lower left", ncols=5, fontsize="small", handlelength=1.2)
    return fig


def _predicted(rows: pandas.DataFrame, steps: pandas.DataFrame, lengths: np.ndarray) -> np.ndarray:
    """(rates, lengths): seconds of a layout's step."""
    row = steps.iloc[0]
    inside, cable = costs(rows, row["link"])
    assert cable is not None
    alone = steps.sort_values("length")
    slope = np.ptp(alone["alone_ms"].iloc[[0, -1]]) / np.ptp(alone["length"].iloc[[0, -1]])
    compute = 1e-3 * (alone["alone_ms"].iloc[0] + slope * (lengths - alone["length"].iloc[0]))
    groups = {name: (int(row[name]), int(row[f"{name}_nodes"])) for name in ("tp", "dp")}
    batch, per_node = int(row["batch"]), int(row["ranks_per_node"])
    beta: Any = 8e-9 / RATES  # one for all rates, each an element of the results
    of_rates = replace(cable, beta=beta)
    seconds = [
        sum(communication_seconds(config_of(row), batch, int(length), groups, per_node, inside, of_rates).values())
        for length in lengths
    ]
    return compute + np.stack([np.broadcast_to(of_length, RATES.shape) for of_length in seconds], axis=1)
