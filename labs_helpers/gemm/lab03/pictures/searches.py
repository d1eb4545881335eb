"""Draw what tuning gains, what its result costs at other shapes, and how many measurements a search needs."""

from __future__ import annotations

import numpy as np
import torch

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import level, predicted
from labs_helpers.draw.roles import color
from labs_helpers.draw.tables import draw_table
from labs_helpers.gemm.configs import default_config
from labs_helpers.gemm.lab03.pictures.space import recorded, short, tflops, times
from labs_helpers.gemm.tuning.recorded import Recorded, long_runs, measured, shapes


@beside_yours("gemm-tuning", measured)
def draw_tuned(measured, kernel: str = "fused_matmul"):
    """Draw the gain of tuning in the sweep itself: one line per shape, from `default_config` to the best of all."""
    found = shapes(measured, kernel)
    gains, before, after = [], [], []
    texts = []
    for shape in found:
        bench = Recorded(measured, kernel, shape)
        config, ms = bench.best()
        default = bench.time(default_config(*shape, torch.float16, "sm_90"))
        gains.append(default / ms - 1)
        before.append(tflops(*shape, default))
        after.append(tflops(*shape, ms))
        texts.append(f"    {after[-1]:.0f}  (+{gains[-1]:.1%})  {short(config)}")
    fig, ax = figures.new(f"Measuring all 144 gains at most {max(gains):.1%} over a simple rule", 8.2)
    figures.write_below(fig, f"{recorded(measured)}; rule: default_config for this chip; labels: the best of 144")
    rows = range(len(found))
    ax.hlines(rows, before, after, color=color("all"), linewidth=4)
    for y, (end, text) in enumerate(zip(after, texts, strict=True)):
        ax.text(end, y, text, va="center", fontsize="small")
    look = {"linestyle": "none", "markersize": 8, "color": color("ours")}
    ax.plot(before, rows, marker="o", fillstyle="none", label="default_config", **look)
    ax.plot(after, rows, marker="|", markeredgewidth=3, label="best of 144", **look)
    ax.set_yticks(rows, map(times, found))
    ax.invert_yaxis()
    ax.set(xlabel="TFLOP/s", xlim=(0, 1.6 * max(after)))
    ax.legend(loc="lower left", ncols=2)
    return fig


def elsewhere(measured, kernel: str = "fused_matmul"):
    """Return a DataFrame of what a configuration costs at another shape.

    Rows are the shapes tuned for, columns the shapes run at. Values are times relative to the best configuration there,
    or NaN if the configuration could not run.
    """
    import pandas

    benches = {times(shape): Recorded(measured, kernel, shape) for shape in shapes(measured, kernel)}
    best = {name: bench.best() for name, bench in benches.items()}
    return pandas.DataFrame(
        {at: {tuned: bench.time(best[tuned][0]) / best[at][1] for tuned in benches} for at, bench in benches.items()}
    )


@beside_yours("gemm-tuning", measured)
def draw_elsewhere(measured, prediction=None, kernel: str = "fused_matmul"):
    """Draw the table of `elsewhere`. prediction: a Prediction of its largest number."""
    table = elsewhere(measured, kernel)
    worst, large = float(np.nanmax(table.to_numpy())), float(np.nanmax(table.iloc[1:, 1:].to_numpy()))
    title = f"Another shape's choice takes up to {worst:.2f}× the best time"
    fig, (ax,) = figures.panels(title, [""], 8.2, 5)
    figures.write_below(fig, f"{recorded(measured)}; among the large shapes up to {large:.2f}×")
    draw_table(ax, table, ".2f", "Reds", 1, max(1.5, worst), dark=lambda ratio: ratio > 1.6)
    ax.set_xticks(range(len(table.columns)), table.columns, rotation=35, ha="right")
    ax.set(xlabel="run at M×N×K", ylabel="tuned for")
    if (guess := predicted(prediction)) is not None:
        text = f"at worst {worst:.2f};\nyour prediction: {guess:g}"
        ax.text(1.02, 0.5, text, transform=ax.transAxes, style="italic")
    return fig


@beside_yours("gemm-tuning", long_runs)
def draw_long(frame, shape=(4096, 4096, 4096)):
    """Draw the rates of the same kernels after a rest, over a second, and in a race. frame: `recorded.long_runs()`."""
    rows = frame[(frame["M"] == shape[0]) & (frame["N"] == shape[1]) & (frame["K"] == shape[2])]
    rows = rows.assign(rate=tflops(*shape, rows["median_ms"]))
    table = rows.pivot_table(index="kernel", columns="how", values="rate").dropna()
    fallen = (1 - table["long"] / table["short"]).mean()
    fig, (ax,) = figures.panels(f"Over a second, rates are {fallen:.0%} lower than after a rest", [""], 9, 2.8)
    raced = rows["kernel"].nunique()
    drawn = f"only {len(table)} of {raced} kernels were timed in all three ways"
    figures.write_below(fig, f"{times(shape)}, {recorded(rows)}; lines: 20th to 80th percentile; {drawn}")
    ways = {
        "short": ("o", 0, "25 ms after a rest"),
        "long": ("s", 4, "1 s"),
        "rounds": ("D", 1, "a race of 14 kernels"),
    }
    for how, (marker, role, name) in ways.items():
        clock = rows.loc[rows["how"] == how, "sm_mhz"].median()
        told = f"{name}, {clock:,.0f} MHz" if np.isfinite(clock) else name
        ax.plot(table[how], range(len(table)), marker, color=color(role), label=told, markersize=8)
        of_way = rows[rows["how"] == how].drop_duplicates("kernel", keep="last").set_index("kernel").loc[table.index]
        spread = (tflops(*shape, of_way[ms]) for ms in ("p80_ms", "p20_ms"))
        ax.hlines(range(len(table)), *spread, color=color(role), linewidth=1.5)
    ax.set_yticks(range(len(table)), list(table.index))
    ax.margins(y=0.3)
    ax.set(xlabel="TFLOP/s")
    ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    return fig


def stale(home, away: dict, kernel: str = "fused_matmul"):
    """Return a DataFrame of what stale cache hits cost: the remembered configuration against the best one.

    home: the records whose best configurations are remembered. away: name of a change → other records. A shape in these
    records gets the configuration of the same shape at home, or of a shape there in the same three buckets.
    """
    import pandas

    remembered = {shape: Recorded(home, kernel, shape).best()[0] for shape in shapes(home, kernel)}
    by_bucket = {tuple((size - 1).bit_length() for size in shape): shape for shape in remembered}
    rows = []
    for name, frame in away.items():
        for shape in shapes(frame, kernel):
            known = by_bucket.get(tuple((size - 1).bit_length() for size in shape))
            if known:
                bench = Recorded(frame, kernel, shape)
                lost = bench.time(remembered[known]) / bench.best()[1] - 1
                rows.append((name, times(shape), times(known), short(bench.best()[0]), short(remembered[known]), lost))
    columns = ["change", "run at", "tuned at", "best there", "remembered", "slower by"]
    return pandas.DataFrame(rows, columns=columns)


def draw_regret(curves: dict, of: str, prediction=None):
    """Draw the regret against the number of measurements: the median over seeds, with the middle half shaded.

    curves: name → array (seeds, measurements) of regrets, 0.02 for 2%; the title compares the first with the third.
    of: the machine that measured them. prediction: a Prediction of the number of measurements until 2%.
    """
    lost = [f"{np.median(np.asarray(values)[:, -1]):.1%}" for values in curves.values()]
    count = len(np.asarray(next(iter(curves.values())))[0])
    fig, ax = figures.new(
        f"{count} random measurements lose {lost[min(2, len(lost) - 1)]}, or {lost[0]} after pruning", width=8.2
    )
    figures.write_below(fig, f"{of}; median and middle half over shapes and seeds")
    for number, (name, values) in enumerate(curves.items()):
        values = 100 * np.asarray(values, dtype=float)
        x = np.arange(1, values.shape[1] + 1)
        low, middle, high = np.quantile(values, (0.25, 0.5, 0.75), axis=0, method="nearest")
        ax.plot(x, middle, label=name, markersize=4)
        ax.fill_between(x, low, high, color=color(number), alpha=0.15, linewidth=0)
    level(ax, 2, role="aside", style=":")
    ax.set(xlabel="measurements", ylabel="% slower than the best", ylim=(0, 40))
    figures.mark_prediction(ax, prediction, 2)
    figures.label_lines(ax)
    return fig


def until(curves, goal: float = 0.02) -> int | None:
    """Return the number of measurements until the median over seeds is within `goal` of the best, or None."""
    middle = np.median(np.asarray(curves, dtype=float), axis=0)
    within = np.nonzero(middle <= goal)[0]
    return int(within[0]) + 1 if len(within) else None


def draw_picks(tables: dict):
    """Draw what the searches of `compilers.picks` lose, with one ring per shape. tables: shape → its DataFrame."""
    searches = list(next(iter(tables.values()))["search"])
    lost = {name: [100 * float(t.set_index("search").at[name, "lost"]) for t in tables.values()] for name in searches}
    counts = next(iter(tables.values())).set_index("search")["measured"]
    worst = max(lost, key=lambda name: max(lost[name]))
    title = f"{worst.split()[0]}'s list, made for all chips, loses up to {max(lost[worst]):.0f}% here"
    fig, (ax,) = figures.panels(title, [""], 9, 3.4)
    for y, name in enumerate(searches):
        ax.plot(lost[name], [y] * len(lost[name]), marker="o", linestyle="none", fillstyle="none", markeredgewidth=1.8)
    ax.set_yticks(range(len(searches)), [f"{name}: {counts[name]} measured" for name in searches])
    ax.invert_yaxis()
    ax.margins(y=0.15)
    ax.set(xlabel="% slower than the best of 144 (one ring per shape)")
    return fig


def kept_losses(measured, prune, chip, most: int = 20, kernel: str = "fused_matmul"):
    """Return what is lost if only the first 1, 2, … `most` configurations that `prune` keeps are measured.

    The result is an array (shapes, most) of fractions of the best time, with math.inf if `prune` keeps nothing.
    """
    table = []
    for shape in shapes(measured, kernel):
        bench = Recorded(measured, kernel, shape)
        kept = list(prune([config for config in bench.rows], *shape, chip))[:most]
        fastest = np.minimum.accumulate([bench.time(config) for config in kept] or [np.inf])
        table.append([fastest[min(i, len(fastest) - 1)] / bench.best()[1] - 1 for i in range(most)])
    return np.array(table)


def draw_kept(losses: dict, goal: float = 0.01):
    """Draw the worst shape's loss against the number of measurements.

    losses: name → array of `kept_losses`. The title names the pruner that comes within `goal` first, and the note gives
    the number of measurements for each.
    """
    within = {name: np.nonzero(values.max(0) <= goal)[0] for name, values in losses.items()}
    first = {name: int(places[0]) + 1 for name, places in within.items() if len(places)}
    best = min(first, key=first.__getitem__, default=None)
    title = f"No pruner comes within {goal:.0%} of the best at the worst shape"
    if best is not None:
        title = f"{best.capitalize()} comes within {goal:.0%} of the best after {first[best]} measurements"
    fig, ax = figures.new(title, width=8.2)
    counts = "; ".join(f"{name} {first.get(name, 'never')}" for name in losses)
    figures.write_below(fig, f"measurements until within {goal:.0%}: {counts}")
    for name, values in losses.items():
        ax.plot(np.arange(1, values.shape[1] + 1), 100 * values.max(0), label=name, markersize=4)
    ax.set(xlabel="configurations measured, in the pruner's order", ylabel="% slower than the best, worst shape")
    ax.set_ylim(0, min(60, ax.get_ylim()[1]))
    ax.set_xticks(range(0, values.shape[1] + 1, 2))
    figures.label_lines(ax)
    return fig
