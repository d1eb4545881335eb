"""Draw tokens per second against the batch."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from labs_helpers.draw import figures
from labs_helpers.draw.beside import beside_yours
from labs_helpers.draw.curves import level, recorded_on, tick_each
from labs_helpers.draw.roles import PAPER, color, marker
from labs_helpers.transformer.charts.words import SPREAD, no_records, words
from labs_helpers.transformer.grids import FIELDS
from labs_helpers.transformer.records import launch_us, setup_of, timed, varied_in
from labs_helpers.transformer.setups import Setup


@beside_yours("transformer")
def draw_batches(frame: pandas.DataFrame, setup: Setup | None = None, size: str = "small") -> Figure:
    """Draw tokens per second against the batch, for `setup` and the fastest other setup, under the roof of the GPU's
    peak. MFU is on the right; a full mark shows the batch from which on a curve has 90% of its best.

    setup: by default the eager bf16 setup with the most measured batches.
    """
    alike = dataclasses.asdict(setup) if setup else {"precision": "bf16", "compiled": False, "graph": False}
    rows = varied_in(timed(frame, size=size, **alike), "batch")
    if len(rows) < 2:
        return no_records(f"{size} at several batches")
    same = timed(frame, size=size, length=rows["length"].iloc[0])
    groups = [group for _, group in same.groupby(list(FIELDS)) if len(group) > 1]
    fastest = max(groups, key=lambda group: group["tokens_per_s"].max())
    curves = {words(setup_of(curve.iloc[0])): (role, curve) for role, curve in (("theirs", fastest), ("ours", rows))}
    roof, best = (rows["tokens_per_s"] / rows["mfu"]).iloc[0], fastest["tokens_per_s"].max()
    title = f"Eager levels off at {_level(rows)}" + f", the fastest way at {_level(fastest)}" * (len(curves) > 1)
    cost = launch_us(rows)
    setting = f"{size}, {rows['length'].iloc[0]:,} tokens per sequence{f', {cost} per launch' * bool(cost)}"
    fig, (ax,) = figures.panels(f"{title}\n{setting}{recorded_on(rows)}", [""], 8.4, 4.8)
    ax.set(ylim=(0, 1.08 * (roof if roof == roof else best)), ylabel="tokens per second")
    tick_each(ax, rows["batch"], xlabel="batch (full mark: 90% of the best)")
    figures.set_unit(ax.yaxis, "")
    for role, curve in curves.values():
        look: dict[str, Any] = {"marker": marker(role), "color": color(role)}
        ax.plot(curve["batch"], curve["tokens_per_s"], markerfacecolor=PAPER, **look)
        tokens = 1e3 * curve["batch"] * curve["length"]
        ax.vlines(
            curve["batch"], tokens / curve["step_p80_ms"], tokens / curve["step_p20_ms"], color=color(role), **SPREAD
        )
        full = curve[curve["batch"] == _levels_off(curve)]
        ax.plot(full["batch"], full["tokens_per_s"], markersize=9, **look)
    if roof == roof:
        level(ax, roof, "the datasheet's FLOP/s / FLOPs per token")
        right = ax.secondary_yaxis("right", functions=(lambda rate: rate / roof, lambda share: share * roof))
        right.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        right.set_ylabel("MFU")
    for name, (role, curve) in curves.items():
        row = curve.iloc[-2]
        figures.label_points(ax, {name: (row["batch"], row["tokens_per_s"])}, color=color(role))
    return fig


def _level(curve: pandas.DataFrame) -> str:
    share = curve["mfu"].max()
    return f"{share:.0%} MFU" if share == share else f"batch {_levels_off(curve)}"


def _levels_off(curve: pandas.DataFrame) -> int:
    """Return the smallest batch with 90% of the curve's best rate."""
    return int(curve[curve["tokens_per_s"] >= 0.9 * curve["tokens_per_s"].max()]["batch"].min())
