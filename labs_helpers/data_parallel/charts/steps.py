"""Draw the time of a step with each wrapper, and with buckets of each size."""

from __future__ import annotations

from typing import Any

import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import WRAPPERS, most_ranks, one_setting, setting_of
from labs_helpers.data_parallel.study.records import ALONE, links, select
from labs_helpers.data_parallel.study.tables import OVERLAPPING, messages, wrapper_table
from labs_helpers.draw import figures
from labs_helpers.draw.bars import FLOOR, draw_bars, over_floor
from labs_helpers.draw.curves import level, predicted

# If a link was measured with several numbers of ranks, these figures show the largest number.


def draw_wrappers(rows: pandas.DataFrame, batch: int | None = None, prediction: Any = None) -> Figure:
    """Draw a bar per wrapper and a panel per link: the step without communication, and the exposed time on top of it.

    The label at a bar's end gives the share of naive's added time that the wrapper hides, or saves without overlap. A
    line spans the middle 60% of the steps. batch: sequences per rank, by default the last measured number. prediction:
    a Prediction in % of the share that bucketed hides, written beside its bar; one without a number is not drawn.
    ValueError without records.
    """
    found = one_setting(most_ranks(select(rows, "wrapper", batch=batch)), "size", "batch", "length")
    tables = {link: wrapper_table(found[found["link"] == link]) for link in links(found)}
    most = max(tables.values(), key=lambda table: table["exposed"].max())
    naive = most[most["wrapper"] == "naive"].iloc[0]
    title = f"Over {naive['link']}, {naive['exposed']:.0%} of the naive step is communication"
    fig, axes = figures.panels(title, tables, 3.4 + 3.4 * len(tables), 3.9, sharey=True)
    names = [name for name in WRAPPERS if name in set(found["wrapper"])]
    roles = {name: WRAPPERS.role(name) for name in names} | {FLOOR: "floor"}
    value = predicted(prediction)
    for ax, (link, table) in zip(axes, tables.items(), strict=True):
        bars, texts = {}, {}
        for _, row in table.iterrows():
            name = row["wrapper"]
            bars[name] = over_floor(1e-3 * row["alone ms"], 1e-3 * row["step ms"], name)
            if name not in (ALONE, "naive"):
                texts[name] = f"{row['hidden']:.0%} {'hidden' if name in OVERLAPPING else 'saved'}"
            if name == "bucketed" and value is not None:
                texts[name] += f"\n(you: {value:.0f}%)"
        ends = 1e-3 * found[found["link"] == link].set_index("wrapper")[["step_p20_ms", "step_p80_ms"]]
        spread = dict(zip(ends.index, ends.itertuples(index=False), strict=True))
        options: dict[str, Any] = {"unit": "s", "xlabel": "time of a step", "room": 1.45}
        draw_bars(ax, bars, roles, texts, spread=spread, names=names, **options)
    figures.legend_below(fig, {FLOOR: "floor", "exposed (colored)": ""})
    figures.write_below(fig, setting_of(found))
    return fig


def draw_buckets(rows: pandas.DataFrame, prediction: Any = None) -> Figure:
    """Draw the time of a step against its number of messages on a log axis, one panel per link.

    Dashed lines show the naive step and the step without communication. prediction: a Prediction of the best number of
    messages, marked on bucketed's curve in the first panel; one without a number is not drawn. ValueError without
    records.
    """
    found = one_setting(most_ranks(select(rows, "bucket")), "size", "batch", "length")
    found = found.assign(messages=[messages(row) for _, row in found.iterrows()])
    ours = found[found["wrapper"] == "bucketed"]
    best = {link: ours.loc[ours.loc[ours["link"] == link, "step_ms"].idxmin()] for link in links(ours)}
    ties = {link: _no_slower(ours[ours["link"] == link], row) for link, row in best.items()}
    told = ", ".join(f"{few} to {many} messages over {link}" for link, (few, many) in ties.items())
    fig, axes = figures.panels(f"Fastest: {told}", best, 3.6 + 3.6 * len(best))
    for ax, link in zip(axes, best, strict=True):
        here = found[found["link"] == link]
        for name, curve in here.groupby("wrapper", sort=False):
            curve = curve.sort_values("messages")
            WRAPPERS.plot(ax, name, curve["messages"], *(1e-3 * curve[f"step{q}_ms"] for q in ("", "_p20", "_p80")))
        highest = max(here["step_p80_ms"].max(), here["naive_ms"].max())
        ax.set(xscale="log", xlabel="messages per step", ylim=(0, 1.15e-3 * highest))
        level(ax, 1e-3 * here["naive_ms"].iloc[-1], "naive")
        level(ax, 1e-3 * here["alone_ms"].iloc[-1], ALONE, below=True)
        ax.xaxis.set_major_formatter("{x:g}")
        ax.minorticks_off()
        figures.set_unit(ax.yaxis, "s")
    axes[0].set_ylabel("time of a step")
    figures.mark_prediction(axes[0], prediction, 1e-3 * next(iter(best.values()))["step_ms"])
    near = "Fastest: the spread (middle 60%) overlaps with the best setting's"
    figures.write_below(fig, f"{near}; {setting_of(found)}")
    figures.label_lines(axes[-1])
    return fig


def _no_slower(curve: pandas.DataFrame, best: pandas.Series) -> tuple[int, int]:
    """Return the fewest and the most messages among the steps whose spread overlaps the best step's."""
    near = curve.loc[curve["step_p20_ms"] <= best["step_p80_ms"], "messages"]
    return int(near.min()), int(near.max())
