"""What helps over a slow link: fewer means per sequence, and fewer bytes per mean."""

from __future__ import annotations

from typing import Any

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts_measured.looks import (
    HOOKS,
    bars_legend,
    bytes_text,
    finish_bars,
    new_figure,
    one_setting,
    setting_of,
    step_bar,
    three,
)
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted, tick_each

WORDS = {"every pass": "after each pass", "last pass": "after the last"}
SYNCS = {"every pass": ("v", "purple"), "last pass": ("o", "blue")}


def draw_accumulate(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Time per sequence against backward passes per step, a panel per link: gradients averaged after the last pass or
    after each, and without synchronisation (dotted).

    prediction: a Prediction of the ms per sequence with the most passes, averaged after the last, in the first panel;
    one without a number draws nothing. ValueError without records.
    """
    found = one_setting(select(rows, "accumulate"), "size", "batch", "length")
    most, names = int(found["micro_batches"].max()), links(found)
    worst = found[(found["micro_batches"] == most) & (found["link"] == names[0])].set_index("sync")["step_ms"]
    times = worst["every pass"] / worst["last pass"]
    title = f"{most} passes, over {names[0]}: averaging after each takes {times:.2g} times as long as after the last"
    setting = setting_of(found).replace("tokens per rank", "tokens per rank and pass")
    fig, axes = new_figure(
        f"{title}\n{setting}", 3.6 + 3.4 * len(names), height=4.2, ncols=len(names), sharey=True,
        squeeze=False,
    )  # fmt: skip
    for ax, link in zip(axes[0], names, strict=True):
        here = found[found["link"] == link]
        single = here[here["micro_batches"] == 1]  # where both are the same
        for sync, (marker, color) in SYNCS.items():
            curve = pandas.concat([single, here[(here["sync"] == sync) & (here["micro_batches"] > 1)]])
            each = 1e-3 / (curve["micro_batches"] * curve["batch"])
            look = {"color": figures.COLORS[color]}
            ax.plot(curve["micro_batches"], each * curve["step_ms"], marker + "-", label=WORDS[sync], **look)
        floor = here.drop_duplicates("micro_batches").sort_values("micro_batches")
        each = 1e-3 / (floor["micro_batches"] * floor["batch"])
        ax.plot(
            floor["micro_batches"], each * floor["alone_ms"], ":", marker="", color=figures.COLORS["black"],
            label="never",
        )  # fmt: skip
        tick_each(ax, here["micro_batches"], base=2)
        ax.set(xlabel="backward passes per step", ylim=(0, None))
        ax.set_title(link, fontsize="medium")
        figures.set_unit(ax.yaxis, "s")
    axes[0][0].set_ylabel("time per sequence of a rank")
    figures.label_lines(axes[0][-1])
    value = predicted(prediction)
    figures.mark_prediction(axes[0][0], most, 1e-3 * value if value is not None else None)
    return fig


def draw_compression(rows: pandas.DataFrame) -> Figure:
    """Time of a step with each compression, a panel per link; at the bar's end what a rank sends in it, and that over
    what it sends uncompressed. ValueError without records."""
    found = one_setting(select(rows, "compression"), "size", "batch", "length")
    names = [name for name in HOOKS if name in set(found["hook"])]
    columns = links(found)
    slow = found[found["link"] == columns[0]].set_index("hook")
    best = slow["step_ms"].idxmin()
    fewer = slow.loc["mean", "sent_bytes"] / slow["sent_bytes"]
    faster = slow.loc["mean", "step_ms"] / slow.loc[best, "step_ms"]
    less = three(fewer[best])
    title = f"Over {columns[0]} {best} is the fastest: {faster:.2g} times as fast, with 1/{less} of the bytes"
    fig, axes = new_figure(
        f"{title}\n{setting_of(found)}", 3.2 + 3.4 * len(columns), height=3.4, ncols=len(columns), sharey=True,
        squeeze=False,
    )  # fmt: skip
    for ax, link in zip(axes[0], columns, strict=True):
        here = found[found["link"] == link].set_index("hook")
        for y, name in enumerate(names):
            step, alone = 1e-3 * here.loc[name, "step_ms"], 1e-3 * here.loc[name, "alone_ms"]
            sent = here.loc[name, "sent_bytes"]
            times = "" if name == "mean" else f", 1/{three(here.loc['mean', 'sent_bytes'] / sent)}"
            step_bar(ax, y, alone, step, HOOKS.color(name), bytes_text(sent) + times)
        finish_bars(ax, names, link, 1e-3 * max(here["step_ms"].max(), here["alone_ms"].max()))
    bars_legend(fig, {"the rest (coloured)": ""})
    return fig
