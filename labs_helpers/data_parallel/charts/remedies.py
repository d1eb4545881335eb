"""Draw two remedies for a slow link: fewer all-reduces per sequence, and fewer bytes per all-reduce."""

from __future__ import annotations

from typing import Any

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import HOOKS, one_setting, setting_of
from labs_helpers.data_parallel.study.records import links, select
from labs_helpers.draw import figures
from labs_helpers.draw.bars import FLOOR, draw_bars, over_floor
from labs_helpers.draw.curves import Curves, tick_each
from labs_helpers.draw.words import bytes_text, listed, three

WORDS = {"every pass": "after each pass", "last pass": "after the last"}
SYNCS = Curves({"after each pass": "naive", "after the last": "ours", "never": ("result", "")})


def draw_accumulate(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Draw time per sequence against backward passes per step, one panel per link.

    The curves average gradients after the last pass, after each pass, or never (dotted). prediction: a Prediction in
    ms per sequence for the most passes, averaged after the last, in the first panel; one without a number is not drawn.
    ValueError without records.
    """
    found = one_setting(select(rows, "accumulate"), "size", "batch", "length")
    most, names = int(found["micro_batches"].max()), links(found)
    worst = found[(found["micro_batches"] == most) & (found["link"] == names[0])].set_index("sync")["step_ms"]
    times = worst["every pass"] / worst["last pass"]
    title = f"Averaging after each of {most} passes takes {times:.2g} times as long"
    setting = setting_of(found).replace("tokens per rank", "tokens per rank and pass")
    fig, axes = figures.panels(title, names, 3.6 + 3.4 * len(names), sharey=True)
    for ax, link in zip(axes, names, strict=True):
        here = found[found["link"] == link]
        here = here.assign(each=1e-3 / (here["micro_batches"] * here["batch"]))
        single = here[here["micro_batches"] == 1]  # with one pass, both ways are the same
        for sync, word in WORDS.items():
            curve = pandas.concat([single, here[(here["sync"] == sync) & (here["micro_batches"] > 1)]])
            SYNCS.plot(ax, word, curve["micro_batches"], curve["each"] * curve["step_ms"])
        floor = here.drop_duplicates("micro_batches").sort_values("micro_batches")
        SYNCS.plot(ax, "never", floor["micro_batches"], floor["each"] * floor["alone_ms"], linestyle=":")
        tick_each(ax, here["micro_batches"], base=2, xlabel="backward passes per step")
        ax.set_ylim(0, None)
        figures.set_unit(ax.yaxis, "s")
    axes[0].set_ylabel("time per sequence of a rank")
    figures.write_below(fig, setting)
    figures.label_lines(axes[-1])
    figures.mark_prediction(axes[0], most, prediction, scale=1e-3)
    return fig


def draw_compression(rows: pandas.DataFrame) -> Figure:
    """Draw the time of a step with each compression, one panel per link.

    The label at a bar's end gives the bytes that a rank sends, and their ratio to the uncompressed bytes. ValueError
    without records.
    """
    found = one_setting(select(rows, "compression"), "size", "batch", "length")
    names, columns = [name for name in HOOKS if name in set(found["hook"])], links(found)
    slow = found[found["link"] == columns[0]].set_index("hook")
    faster = [name for name in names if slow.loc[name, "step_p80_ms"] < slow.loc["mean", "step_p20_ms"]]
    title = f"{listed(faster) or 'No compression'} beat{'s' * (len(faster) < 2)} the mean over {columns[0]}"
    fig, axes = figures.panels(title, columns, 3.2 + 3.4 * len(columns), 3.4, sharey=True)
    for ax, link in zip(axes, columns, strict=True):
        here = found[found["link"] == link].set_index("hook")
        sent, alone, step = here["sent_bytes"], 1e-3 * here["alone_ms"], 1e-3 * here["step_ms"]
        bars = {name: over_floor(alone[name], step[name], name) for name in names}
        texts = {
            name: bytes_text(sent[name]) + (f", 1/{three(sent['mean'] / sent[name])}" if name != "mean" else "")
            for name in names
        }
        roles = {name: HOOKS.role(name) for name in names} | {FLOOR: "floor"}
        spread = {name: (1e-3 * here["step_p20_ms"][name], 1e-3 * here["step_p80_ms"][name]) for name in names}
        options: dict[str, Any] = {"unit": "s", "xlabel": "time of a step", "room": 1.45}
        draw_bars(ax, bars, roles, texts, spread=spread, names=names, **options)
    figures.legend_below(fig, {FLOOR: "floor", "the rest (colored)": ""})
    figures.write_below(
        fig, f"At the bar's end: bytes sent per rank, and their ratio to the mean's; {setting_of(found)}"
    )
    return fig
