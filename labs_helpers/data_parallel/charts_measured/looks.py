"""What these figures have in common: colours by wrapper and stage, titles that are broken, what was measured."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.draw import figures
from labs_helpers.draw.curves import Curves, recorded_on

COMPUTE = "#B9B6AC"
WRAPPERS = Curves({
    "no synchronisation": ("X", "black"), "naive": ("v", "purple"), "flat": ("P", "orange"),
    "overlapped": ("^", "green"), "bucketed": ("o", "blue"), "DistributedDataParallel": ("s", "vermillion"),
})  # fmt: skip
STAGES = Curves({
    "DDP": ("o", "blue"), "ZeRO-1": ("s", "green"), "ZeRO-2": ("D", "orange"), "ZeRO-3": ("^", "vermillion"),
    "SHARD_GRAD_OP": ("v", "purple"),
})  # fmt: skip
HOOKS = Curves({
    "mean": ("o", "black"), "top-k 1%": ("s", "vermillion"),
    "top-k 10%": ("v", "orange"), "int8": ("D", "green"), "PowerSGD": ("^", "purple"),
})  # fmt: skip
LAYOUTS = {"autocast over float32": "all in float32", "bf16": "all in bfloat16"}  # where autocast has no part in it
PARTS = {"parameters": "blue", "gradients": "orange", "optimizer": "green"}


def new_figure(title: str, width: float, **layout: Any) -> tuple[Figure, Any]:
    """`figures.new` with a title above all panels, whose lines are broken where the figure ends."""
    lines = "\n".join(textwrap.fill(line, int(10 * width)) for line in title.splitlines())
    fig, axes = figures.new(None, width, **layout)
    fig.suptitle(lines, x=0.01, ha="left", fontsize=figures.STYLE["axes.titlesize"])
    return fig, axes


def setting_of(rows: pandas.DataFrame, batch: bool = True) -> str:
    """'2 ranks, 3.5 M parameters, 2 × 128 tokens per rank, 4-core CPU (recorded)', as far as all records agree."""
    first = rows.iloc[0]
    ranks = sorted(rows["ranks"].unique())
    told = [f"{' and '.join(f'{n:.0f}' for n in ranks)} ranks"] if len(ranks) < 3 else []
    if "parameters" in rows:
        told.append(f"{short(first['parameters'])} parameters")
    if batch and rows["batch"].nunique() == 1:
        told.append(f"{first['batch']:.0f} × {first['length']:.0f} tokens per rank")
    return ", ".join(told) + recorded_on(rows)


def what_ranks_are(rows: pandas.DataFrame) -> str:
    """'GPUs', or 'ranks' where they were measured without."""
    return "ranks" if "on.device" in rows and (rows["on.device"] == "cpu").all() else "GPUs"


def short(number: float) -> str:
    """'3.4 M'"""
    for unit, name in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if number >= unit:
            return f"{number / unit:.3g}{name}"
    return f"{number:.3g}"


def three(number: float) -> str:
    """Three digits, without exponents: '0.985', '31.2', '1,110'."""
    return f"{float(f'{number:.3g}'):,.0f}" if number >= 100 else f"{number:.3g}"


def bytes_text(number: float) -> str:
    return f"{short(number)}B" if number >= 1e3 else f"{number:.0f} B"


def one_setting(rows: pandas.DataFrame, *columns: str) -> pandas.DataFrame:
    """The rows that have the values of the last one in these columns."""
    for column in columns:
        if column in rows:
            rows = rows[rows[column] == rows[column].iloc[-1]]
    return rows


def most_ranks(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Of each link the rows with its most ranks."""
    return rows[rows["ranks"] == rows.groupby("link")["ranks"].transform("max")]


def step_bar(ax: Axes, y: int, alone: float, step: float, color: str, text: str) -> None:
    """A bar of a step in seconds: the same without synchronisation, the rest in its colour, words at the end."""
    ax.barh(y, min(alone, step), color=COMPUTE, height=0.62)
    ax.barh(y, max(0.0, step - alone), left=min(alone, step), color=color, height=0.62)
    if text:
        bar_end(ax, max(alone, step), y, text)


def finish_bars(ax: Axes, names: list[str], title: str, longest: float, room: float = 1.45) -> None:
    """room: of the axis, in lengths of the longest bar: what is written at the bars' ends needs some."""
    ax.set(xlabel="time of a step", xlim=(0, room * longest), yticks=range(len(names)), yticklabels=names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_title(title, fontsize="medium")
    ax.locator_params(axis="x", nbins=5)
    ax.grid(False, axis="y")
    figures.set_unit(ax.xaxis, "s")


def bars_legend(fig: Figure, rest: Mapping[str, str]) -> None:
    """What the grey and the coloured parts of the bars are. rest: label → colour."""
    patches = [Patch(color=COMPUTE, label=ALONE)]
    for label, color in rest.items():
        patches.append(Patch(color=color, label=label) if color else Patch(fill=False, label=label))
    fig.legend(handles=patches, loc="outside lower left", ncols=3, fontsize="small", handlelength=1.2)


def bar_end(ax: Axes, x: float, y: float, text: str) -> None:
    """Words right of a bar's end, on the figure's ground."""
    ground = {"facecolor": figures.PAPER, "edgecolor": "none", "pad": 1}
    ax.annotate(
        text, (x, y), xytext=(5, 0), textcoords="offset points", va="center", fontsize="small", bbox=ground,
        annotation_clip=False,
    )  # fmt: skip


def level(ax: Axes, at: float, text: str, above: bool = True) -> None:
    """A dashed line over the whole width, with words over its left end or below it."""
    ax.axhline(at, linestyle="--", linewidth=1.4, color=figures.COLORS["black"], label="_level")
    where: dict[str, Any] = {"xycoords": ax.get_yaxis_transform(), "textcoords": "offset points"}
    ax.annotate(
        text, (0.02, at), xytext=(0, 4 if above else -4), va="bottom" if above else "top", style="italic",
        fontsize="small", **where,
    )  # fmt: skip
