"""The time of a step: with each wrapper, with buckets of each size, and in each stage of ZeRO."""

from __future__ import annotations

from typing import Any

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts_measured.looks import (
    STAGES,
    WRAPPERS,
    bar_end,
    bars_legend,
    finish_bars,
    level,
    most_ranks,
    new_figure,
    one_setting,
    setting_of,
    step_bar,
    three,
)
from labs_helpers.data_parallel.study.records import ALONE, links, select
from labs_helpers.data_parallel.study.tables import OVERLAPPING, stage_table, wrapper_table
from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted

# Where a link's steps were measured on several numbers of ranks, these figures show those on the most.


def draw_wrappers(rows: pandas.DataFrame, batch: int | None = None, prediction: Any = None) -> Figure:
    """A bar per wrapper, a panel per link: the step without synchronisation, and what is exposed on top of it; at the
    bar's end how much of what the naive step adds is hidden, or saved without any overlap.

    batch: sequences per rank, by default the last that was measured. prediction: a Prediction of bucketed's hidden
    share in %, told beside its bar; one without a number draws nothing. ValueError without records.
    """
    found = one_setting(most_ranks(select(rows, "wrapper", batch=batch)), "size", "batch", "length")
    tables = {link: wrapper_table(found[found["link"] == link]) for link in links(found)}
    most = max(tables.values(), key=lambda table: table["exposed"].max())
    naive = most[most["wrapper"] == "naive"].iloc[0]
    title = f"Over {naive['link']} {naive['exposed']:.0%} of the naive step is communication\n{setting_of(found)}"
    fig, axes = new_figure(title, 3.4 + 3.4 * len(tables), height=3.9, ncols=len(tables), sharey=True, squeeze=False)
    names = [name for name in WRAPPERS if name in set(found["wrapper"])]
    value = predicted(prediction)
    for ax, (link, table) in zip(axes[0], tables.items(), strict=True):
        said: dict[str, str] = {}
        for _, row in table.iterrows():
            y = names.index(row["wrapper"])
            word = "hidden" if row["wrapper"] in OVERLAPPING else "saved"
            text = "" if row["wrapper"] in (ALONE, "naive") else f"{row['hidden']:.0%} {word}"
            if row["wrapper"] == "bucketed" and value is not None:
                text += f"\n(you: {value:.0f}%)"
            step_bar(ax, y, 1e-3 * row["alone ms"], 1e-3 * row["step ms"], WRAPPERS.color(row["wrapper"]), "")
            said[row["wrapper"]] = text
        longest = _spread(ax, found[found["link"] == link], "wrapper", names, said)
        finish_bars(ax, names, link, longest)
    bars_legend(fig, {"exposed (coloured)": ""})
    return fig


def draw_stage_steps(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """A bar per way, in its stage's colour, a panel per link: no synchronisation, and what is exposed on top of it; at
    the bar's end the step over DistributedDataParallel's.

    prediction: a Prediction of ZeRO-3's step over DistributedDataParallel's; one without a number draws nothing.
    """
    found = one_setting(most_ranks(select(rows, "stage_step")), "size", "batch", "length")
    table = stage_table(found)
    ours = table[(table["library"] == "ours") & (table["stage"] != "DDP")].sort_values("step ms").iloc[0]
    title = f"{ours['way']} takes {ours['× DDP']:.2f} times DistributedDataParallel's step\n{setting_of(found)}"
    names = list(dict.fromkeys(found["way"]))
    height, columns = 1.9 + 0.34 * len(names), links(found)
    fig, axes = new_figure(
        title, 3.6 + 3.6 * len(columns), height=height, ncols=len(columns), sharey=True, squeeze=False
    )
    value = predicted(prediction)
    for ax, link in zip(axes[0], columns, strict=True):
        said: dict[str, str] = {}
        for _, row in table[table["link"] == link].iterrows():
            text = "" if row["way"] == ALONE else f"{row['× DDP']:.2f}×"
            if row["way"] == "ZeRO-3" and value is not None:
                text += f" (you: {value:.2f}×)"
            alone = row["step ms"] - row["exposed ms"]
            step_bar(ax, names.index(row["way"]), 1e-3 * alone, 1e-3 * row["step ms"], STAGES.color(row["stage"]), "")
            said[row["way"]] = text
        longest = _spread(ax, found[found["link"] == link], "way", names, said)
        finish_bars(ax, names, link, longest, room=1.3)
    used = [name for name in STAGES if name in set(found["stage"])]
    bars_legend(fig, {f"exposed, {name}": STAGES.color(name) for name in used})
    return fig


def draw_buckets(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Time of a step against the size of its buckets, logarithmic, a panel per link; the floor and the naive step
    dashed.

    prediction: a Prediction of the best size in MB (2²⁰ bytes), marked on the curve of bucketed in the first panel; one
    without a number draws nothing. ValueError without records.
    """
    found = one_setting(most_ranks(select(rows, "bucket")), "size", "batch", "length")
    ours = found[found["wrapper"] == "bucketed"]
    best = {link: ours.loc[ours.loc[ours["link"] == link, "step_ms"].idxmin()] for link in links(ours)}
    told = ", ".join(f"{three(row['bucket_mb'])} MB over {link}" for link, row in best.items())
    fig, axes = new_figure(
        f"The best buckets of ours: {told}\n{setting_of(found)}",
        3.6 + 3.6 * len(best), height=4.2, ncols=len(best), squeeze=False,
    )  # fmt: skip
    value = predicted(prediction)
    for number, (ax, link) in enumerate(zip(axes[0], best, strict=True)):
        here = found[found["link"] == link]
        for name, curve in here.groupby("wrapper", sort=False):
            curve = curve.sort_values("bucket_mb")
            WRAPPERS.plot(ax, name, curve["bucket_mb"], *(1e-3 * curve[f"step{q}_ms"] for q in ("", "_p20", "_p80")))
        ax.set(
            xscale="log", xlabel="bucket_mb", ylim=(0, 1.15e-3 * max(here["step_p80_ms"].max(), here["naive_ms"].max()))
        )
        level(ax, 1e-3 * here["naive_ms"].iloc[-1], "naive")
        level(ax, 1e-3 * here["alone_ms"].iloc[-1], ALONE, above=False)
        ax.set_xticks(
            sorted(here["bucket_mb"].unique()), [three(float(f"{mb:.2g}")) for mb in sorted(here["bucket_mb"].unique())]
        )
        ax.minorticks_off()
        ax.set_title(link, fontsize="medium")
        figures.set_unit(ax.yaxis, "s")
        if number == 0:
            ax.set_ylabel("time of a step")
            figures.mark_prediction(ax, value, 1e-3 * best[link]["step_ms"] if value else None)
    figures.label_lines(axes[0][-1])
    return fig


def _spread(ax: Axes, rows: pandas.DataFrame, column: str, names: list[str], said: dict[str, str]) -> float:
    """The middle 60% of each bar's steps, and behind both what is said of it. Returns the farthest end in seconds."""
    places = [names.index(name) for name in rows[column]]
    above = [y - 0.2 for y in places]
    ax.hlines(above, 1e-3 * rows["step_p20_ms"], 1e-3 * rows["step_p80_ms"], color=figures.INK, linewidth=1.2)
    ends = 1e-3 * rows[["alone_ms", "step_ms", "step_p80_ms"]].max(axis=1)
    for y, end, name in zip(places, ends, rows[column], strict=True):
        if said.get(name):
            bar_end(ax, end, y, said[name])
    return float(ends.max())
