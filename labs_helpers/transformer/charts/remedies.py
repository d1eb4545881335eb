"""Show the gain of each remedy in a step: drawn along several orders, and as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import recorded_on
from labs_helpers.draw.roles import INK, color
from labs_helpers.transformer.charts.words import no_records, shape_text, words
from labs_helpers.transformer.records import setup_of, walked_steps
from labs_helpers.transformer.setups import ORDERS, REMEDIES, Setup, treatment, walk


@beside_yours("transformer")
def draw_waterfall(
    frame: pandas.DataFrame, orders: Mapping[str, Mapping[str, Setup]] | None = None, **wanted: Any
) -> Figure:
    """Draw by how many ms each remedy shortens a step, with one panel per order of remedies.

    orders: name → {"start": Setup, remedy: the setup with it and all earlier ones, …}; by default `walk` along each of
    ORDERS. wanted: columns' values, such as size="small"; by default the shape with the most records is drawn.
    """
    orders = orders or {name: walk(name) for name in ORDERS}
    walked = {name: walked_steps(frame, path, **wanted) for name, path in orders.items()}
    walked = {name: rows for name, rows in walked.items() if len(rows.dropna(subset="step_ms")) > 1}
    if not walked:
        return no_records("steps along an order of remedies")
    start = next(iter(walked.values())).dropna(subset="size")
    setting = f"{shape_text(start.iloc[0])}, from {words(setup_of(start.iloc[0]))}{recorded_on(start)}"
    title = f"{_remedy_that_differs(walked)}\n{setting}"
    fig, axes = figures.panels(title, walked, max(7.2, 0.4 + 3.0 * len(walked)), 3.7, sharex=True)
    remedies = list(dict.fromkeys([*REMEDIES, *(name for rows in walked.values() for name in rows.index[1:])]))
    for ax, rows in zip(axes, walked.values(), strict=True):
        _draw_steps_down(ax, rows, {name: color(number) for number, name in enumerate(remedies)})
    axes[0].set_xlim(0, 2.0 * max(rows["step_ms"].max() for rows in walked.values()))
    return fig


def _draw_steps_down(ax: Axes, rows: pandas.DataFrame, colors: Mapping[str, str]) -> None:
    """Draw one bar for the first step, one for what each remedy took off it, and one for what remains."""
    times = rows["step_ms"]
    reached = float("nan")
    for y, (remedy, ms) in enumerate(times.items()):
        if np.isnan(ms):
            why = "out of memory" if rows.loc[remedy, "out_of_memory"] is True else "not measured"
            ax.text(np.nan_to_num(reached), y, f" {why}", va="center", style="italic")
            continue
        if np.isnan(reached):
            ax.barh(y, ms, color=color("aside"))
            text = f"{ms:.3g} ms"
        else:
            ax.barh(y, reached - ms, left=ms, color=colors.get(remedy, color("aside")))
            text = f"{ms - reached:+.3g} ms".replace("-", "−")
        ax.text(np.fmax(ms, reached), y, f" {text}", va="center")
        reached = ms
        ax.vlines(ms, y, y + 1, color=color("aside"), linewidth=0.8, zorder=0)
    ax.barh(len(times), reached, color=color("result"))
    ends = [*range(1, len(times)), len(times)]  # each step's spread, where the next bar begins
    ax.hlines(ends, rows["step_p20_ms"], rows["step_p80_ms"], color=INK, linewidth=1.2)
    ax.text(reached, len(times), f" {reached:.3g} ms, {times.dropna().iloc[0] / reached:.1f}× in all", va="center")
    ax.set_yticks(range(len(times) + 1), [*times.index, "left"])
    ax.invert_yaxis()
    ax.set_xlabel("time of a step, ms")
    ax.grid(False, axis="y")


def _remedy_that_differs(walked: Mapping[str, pandas.DataFrame]) -> str:
    """Return a title that names the remedy whose gain depends the most on the remedies before it."""
    saved: dict[str, list[float]] = {}
    for rows in walked.values():
        ms = rows["step_ms"].ffill().shift() - rows["step_ms"]
        for remedy, value in ms.dropna().items():
            saved.setdefault(str(remedy), []).append(value)
    remedy, ways = max(saved.items(), key=lambda item: max(item[1]) - min(item[1]))
    return f"{remedy} saves {min(ways):.3g} or {max(ways):.3g} ms, by what came before it".replace("-", "−")


def remedies_table(
    frame: pandas.DataFrame,
    path: Mapping[str, Setup] | None = None,
    expected: Mapping[str, object] | None = None,
    **wanted: Any,
) -> pandas.DataFrame:
    """Return the table of remedies: one row per remedy, with time, peak and launches of a step before and after it.

    path: {"start": Setup, remedy: the setup with it and all earlier ones, …}; by default `treatment()`. expected:
    remedy → what was predicted, a text or a number. wanted: columns' values, such as size="1b"; by default the shape
    with the most records. NaN if a step was not measured or ran out of memory; the next row's 'before' is then the last
    measured step.
    """
    rows = walked_steps(frame, path or treatment(), **wanted)
    columns: dict[tuple[str, str], Any] = {}
    if expected is not None:
        columns["predicted", ""] = [expected.get(str(remedy), "") for remedy in rows.index[1:]]
    for name, values, digits in (
        ("step, ms", rows["step_ms"], 2),
        ("peak, GB", rows["peak_bytes"] / 1e9, 2),
        ("launches", rows["launches"], 0),
    ):
        before, after = values.ffill().shift().iloc[1:], values.iloc[1:]
        columns[name, "before"], columns[name, "after"] = before.round(digits), after.round(digits)
        if name == "step, ms":
            columns["times as fast", ""] = (before / after).round(2)
    table = pandas.DataFrame(columns, index=rows.index[1:].rename("remedy"))
    return table.astype({column: "Int64" for column in table if column[0] == "launches"})
