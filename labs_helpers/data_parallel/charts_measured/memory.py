"""What a rank holds in each stage: over a step, and at most, beside the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from labs_helpers.data_parallel.charts_measured.looks import (
    LAYOUTS,
    PARTS,
    STAGES,
    bytes_text,
    new_figure,
    one_setting,
    setting_of,
)
from labs_helpers.data_parallel.study.records import select
from labs_helpers.data_parallel.study.tables import memory_table
from labs_helpers.draw import figures
from labs_helpers.draw.curves import predicted


def draw_memory_over_step(rows: pandas.DataFrame, rank: int = 0, layout: str | None = None) -> Figure:
    """Bytes of parameters, gradients and optimizer's states from moment to moment of one step, a panel per stage; the
    formula of the states dashed, and with the blocks that are whole at once dotted.

    layout: by default the first that was measured. ValueError without records.
    """
    found = _of_layout(select(rows, "stage_memory", rank=rank), layout)
    names = [name for name in STAGES if name in set(found["stage"])]
    most = ", ".join(f"{name} {bytes_text(_fullest(found, name))}" for name in names)
    said = f"At its fullest moment rank {rank} holds: {most}\n{_words(found)}, {setting_of(found)}"
    fig, axes = new_figure(said, 2.0 + 2.1 * len(names), height=4.4, ncols=len(names), sharey=True, squeeze=False)
    for ax, name in zip(axes[0], names, strict=True):
        row = found[found["stage"] == name].iloc[-1]
        x = np.arange(len(row["moments"]))
        parts = [np.asarray(row[f"{part}_bytes"], float) for part in PARTS]
        ax.stackplot(x, *parts, step="mid", colors=[figures.COLORS[color] for color in PARTS.values()], linewidth=0)
        told = sum(row[f"formula_{part}"] for part in PARTS)
        ax.axhline(told, linestyle="--", linewidth=1.4, color=figures.COLORS["black"])
        if row["formula_gathered"]:
            ax.axhline(told + row["formula_gathered"], linestyle=":", linewidth=1.6, color=figures.COLORS["black"])
        turn = row["moments"].index("loss")
        ax.axvline(turn, color=figures.INK, linewidth=0.8)
        ax.set_xticks([turn / 2, turn + (len(x) - 1 - turn) / 2], ["forward", "backward,\nupdate"])
        ax.set(xlim=(0, len(x) - 1), ylim=(0, None))
        ax.set_title(name, fontsize="medium")
        ax.grid(False, axis="x")
    axes[0][0].set_ylabel("held by the rank")
    figures.set_unit(axes[0][0].yaxis, "B")
    lines = [
        Line2D([], [], color="black", linestyle="--", label="states, by formula"),
        Line2D([], [], color="black", linestyle=":", label="and all blocks that may be whole at once"),
    ]
    fig.legend(handles=[*_patches(), *lines], loc="outside lower left", ncols=5, fontsize="small", handlelength=1.4)
    return fig


def draw_stage_memory(rows: pandas.DataFrame, prediction: Any = None, layout: str | None = None) -> Figure:
    """A bar per stage of the states that the fullest rank holds: parameters and optimizer's states between steps,
    gradients after backward; a tick for each rank, and the formula as a diamond.

    prediction: a Prediction of ZeRO-2's bytes over DDP's; one without a number draws nothing. ValueError without
    records.
    """
    found = _of_layout(select(rows, "stage_memory"), layout)
    table = memory_table(found)
    names = [name for name in STAGES if name in set(table["stage"])]
    off = table["off"].abs().max()
    fig, ax = new_figure(
        f"The states that a rank holds are those of the formula, within {max(off, 1e-4):.2%}\n"
        f"{_words(found)}, {setting_of(found, batch=False)}",
        8.4, height=2.2 + 0.5 * len(names),
    )  # fmt: skip
    whole = 0.0
    for y, name in enumerate(names):
        of_stage = table[table["stage"] == name]
        by_rank = of_stage.pivot_table(index="rank", columns="part", values="counted", aggfunc="last")
        fullest, left = by_rank.sum(axis=1).idxmax(), 0.0
        for part, color in PARTS.items():
            ax.barh(y, by_rank.loc[fullest, part], left=left, color=figures.COLORS[color], height=0.6)
            left += by_rank.loc[fullest, part]
        whole = max(whole, left)
        ends = by_rank.sum(axis=1)
        ax.plot(ends, [y] * len(ends), "|", color=figures.INK, markersize=16, label="_ranks")
        told = of_stage.drop_duplicates("part")["formula"].sum()
        hollow: dict[str, Any] = {"markersize": 8, "markerfacecolor": "none", "markeredgewidth": 1.6, "color": "black"}
        ax.plot([told], [y], "D", label="_told", **hollow)
        if value := predicted(prediction) if name == "ZeRO-2" else None:
            ddp = table[(table["stage"] == "DDP") & (table["rank"] == 0)]["counted"].sum()
            ax.plot([value * ddp], [y + 0.38], "^", color="black", markersize=9, label="_prediction")
            ax.annotate("your prediction", (value * ddp, y + 0.38), xytext=(7, 0), textcoords="offset points",
                        va="center", fontsize="small", style="italic")  # fmt: skip
    ax.set(xlabel="held by a rank", xlim=(0, 1.06 * whole), yticks=range(len(names)), yticklabels=names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(False, axis="y")
    figures.set_unit(ax.xaxis, "B")
    diamond = Line2D([], [], color="black", marker="D", markerfacecolor="none", linestyle="none", label="formula")
    tick = Line2D([], [], color="black", marker="|", markersize=12, linestyle="none", label="a rank")
    fig.legend(handles=[*_patches(), diamond, tick], loc="outside lower left", ncols=5, fontsize="small")
    return fig


def _of_layout(rows: pandas.DataFrame, layout: str | None) -> pandas.DataFrame:
    """Those of one layout and the most ranks. ValueError: there is none."""
    layout = layout or rows["layout"].iloc[0]
    if not (rows["layout"] == layout).any():
        raise ValueError(f"no records of the layout {layout!r}, but of {', '.join(rows['layout'].unique())}")
    rows = rows[rows["layout"] == layout]
    return one_setting(rows.sort_values("ranks", kind="stable"), "size", "dtype", "ranks", "link")


def _fullest(rows: pandas.DataFrame, stage: str) -> float:
    row = rows[rows["stage"] == stage].iloc[-1]
    return float(np.sum([np.asarray(row[f"{part}_bytes"], float) for part in PARTS], axis=0).max())


def _words(rows: pandas.DataFrame) -> str:
    layout = str(rows["layout"].iloc[0])
    return LAYOUTS.get(layout, layout)


def _patches() -> list[Patch]:
    return [Patch(color=figures.COLORS[color], label=part) for part, color in PARTS.items()]
