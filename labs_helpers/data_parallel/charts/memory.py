"""Draw the memory of a rank over one step, per ZeRO stage."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure

from labs_helpers.data_parallel.charts.settings import LAYOUTS, STAGES, one_setting, setting_of
from labs_helpers.data_parallel.study.records import select
from labs_helpers.data_parallel.study.tables import PARTS
from labs_helpers.draw import figures
from labs_helpers.draw.curves import level
from labs_helpers.draw.roles import INK, color
from labs_helpers.draw.words import bytes_text


def draw_memory_over_step(rows: pandas.DataFrame, rank: int = 0, layout: str | None = None) -> Figure:
    """Draw the bytes of parameters, gradients and optimizer states during one step, one panel per stage.

    A dashed line shows the states' formula, and a dotted one adds the blocks that may be gathered at the same time.
    layout: by default the first measured one. ValueError without records.
    """
    found = _of_layout(select(rows, "stage_memory", rank=rank), layout)
    names = [name for name in STAGES if name in set(found["stage"])]
    fullest = {name: _fullest(found, name) for name in names}
    words = LAYOUTS.get(found["layout"].iloc[0], found["layout"].iloc[0])
    least, most = min(fullest, key=lambda name: fullest[name]), max(fullest, key=lambda name: fullest[name])
    title = f"Peak on rank {rank}: {bytes_text(fullest[least])} ({least}) to {bytes_text(fullest[most])} ({most})"
    panels = [f"{name}\npeak {bytes_text(fullest[name])}" for name in names]
    fig, axes = figures.panels(title, panels, 2.0 + 2.1 * len(names), 4.6, sharey=True)
    for ax, name in zip(axes, names, strict=True):
        row = found[found["stage"] == name].iloc[-1]
        x = np.arange(len(row["moments"]))
        parts = [np.asarray(row[f"{part}_bytes"], float) for part in PARTS]
        ax.stackplot(x, *parts, step="mid", colors=[color(part) for part in PARTS], linewidth=0)
        told = sum(row[f"formula_{part}"] for part in PARTS)
        level(ax, told, role="formula")
        if row["formula_gathered"]:
            level(ax, told + row["formula_gathered"], role="formula", style=":")
        turn = row["moments"].index("loss")
        ax.axvline(turn, color=INK, linewidth=0.8)
        ax.set_xticks([turn / 2, turn + (len(x) - 1 - turn) / 2], ["forward", "backward,\nupdate"])
        ax.set(xlim=(0, len(x) - 1), ylim=(0, None))
        ax.grid(False, axis="x")
    axes[0].set_ylabel("model states held")
    figures.set_unit(axes[0].yaxis, "B")
    lines: dict[str, Any] = {
        "states, by formula": ("formula", "--"),
        "plus all blocks that may be whole": ("formula", ":"),
    }
    figures.legend_below(fig, lines | {part: part for part in PARTS})
    figures.write_below(fig, f"{words}, {setting_of(found)}")
    return fig


def _of_layout(rows: pandas.DataFrame, layout: str | None) -> pandas.DataFrame:
    """Return the rows of one layout with the most ranks. ValueError if the layout has no records."""
    layout = layout or rows["layout"].iloc[0]
    if not (rows["layout"] == layout).any():
        raise ValueError(f"no records of the layout {layout!r}, but of {', '.join(rows['layout'].unique())}")
    rows = rows[rows["layout"] == layout]
    return one_setting(rows.sort_values("ranks", kind="stable"), "size", "dtype", "ranks", "link")


def _fullest(rows: pandas.DataFrame, stage: str) -> float:
    row = rows[rows["stage"] == stage].iloc[-1]
    return float(np.sum([np.asarray(row[f"{part}_bytes"], float) for part in PARTS], axis=0).max())
