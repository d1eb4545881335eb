"""What the study's figures have in common: their looks, the words in them, and the figure of nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pandas
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.curves import Curves
from labs_helpers.transformer.setups import Setup

EAGER = Setup(precision="bf16")
CURVES = Curves({
    "tiny": ("v", "sky"), "small": ("o", "blue"), "medium": ("s", "vermillion"), "large": ("^", "orange"),
    "xl": ("P", "purple"), "1b": ("D", "green"),
})  # fmt: skip


def by_size(rows: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """size → its rows, in the order of CURVES; sizes of one's own last."""
    names = dict.fromkeys([*CURVES, *sorted(set(rows["size"]))])
    return {name: rows[rows["size"] == name] for name in names if name in set(rows["size"])}


def new_figure(title: str, width: float, **layout: Any) -> tuple[Figure, Any]:
    """`figures.new` with a title whose lines are broken where the figure ends."""
    letters = int(10 * width)
    return figures.new("\n".join(textwrap.fill(line, letters) for line in title.splitlines()), width, **layout)


def no_records(what: str) -> Figure:
    """A figure that says what there are no records of; its `empty` is True."""
    fig, ax = figures.new(height=1.4)
    told = textwrap.fill(f"No records here of {what}.", 70)
    say_instead(ax, f"{told}\nSee python -m labs_helpers.transformer.study --help")
    fig.empty = True  # type: ignore[attr-defined]
    return fig


def say_instead(ax: Axes, text: str) -> None:
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", style="italic")


def level_line(ax: Axes, height: float, text: str, right: bool = False) -> None:
    """A dashed line with words over its left end, or over its right."""
    ax.axhline(height, linestyle="--", linewidth=1.4, color=figures.COLORS["black"], label="_line")
    ax.annotate(
        text,
        (0.98 if right else 0.02, height),
        xycoords=ax.get_yaxis_transform(),
        xytext=(0, 4),
        textcoords="offset points",
        ha="right" if right else "left",
        style="italic",
    )


def listed(texts: list[str]) -> str:
    """'a, b and c'"""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def words(setup: Setup) -> str:
    """A setup for a reader; PyTorch's own optimizer goes without saying."""
    said = [f"{setup.attention} attention", setup.precision, "compiled" if setup.compiled else "eager"]
    said += ["block by block"] * setup.regional
    said += [f"{setup.optimizer} optimizer"] * (setup.optimizer != Setup.optimizer)
    said += ["CUDA graph"] * setup.graph
    said += [f"{setup.segments} segments"] * (setup.segments > 0)
    said += [f"{setup.accumulate} micro-batches"] * (setup.accumulate > 1)
    return ", ".join(said)


def short_length(length: int) -> str:
    """'4k' for 4,096, as `tick_each` writes it."""
    return f"{length // 1024}k" if length % 1024 == 0 else str(length)


def shape_text(row: Mapping[str, Any]) -> str:
    return f"{row['size']}, batch {row['batch']:.0f}, {row['length']:,.0f} tokens"
