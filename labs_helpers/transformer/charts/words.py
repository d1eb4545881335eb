"""Shared parts of the study's figures: the looks of sizes, descriptions of setups, and the figure for missing
records."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import pandas
from matplotlib.figure import Figure

from labs_helpers.draw import figures
from labs_helpers.draw.curves import Curves
from labs_helpers.transformer.setups import Setup

SPREAD: dict[str, Any] = {"linewidth": 4, "alpha": 0.3}  # look of a bar from the 20th to the 80th percentile
EAGER = Setup(precision="bf16")
CURVES = Curves({"tiny": 5, "small": 0, "medium": 1, "large": 4, "xl": 3, "1b": 2})


def by_size(rows: pandas.DataFrame) -> dict[str, pandas.DataFrame]:
    """Return size → its rows, in the order of CURVES, followed by the user's own sizes."""
    names = dict.fromkeys([*CURVES, *sorted(set(rows["size"]))])
    return {name: rows[rows["size"] == name] for name in names if name in set(rows["size"])}


def no_records(what: str) -> Figure:
    """Return a figure that names the missing records; its `empty` is True."""
    told = textwrap.fill(f"No records here of {what}.", 70)
    return figures.say(f"{told}\nSee python -m labs_helpers.transformer.study --help")


def words(setup: Setup) -> str:
    """Describe a setup in words; PyTorch's default optimizer is not mentioned."""
    said = [f"{setup.attention} attention", setup.precision, "compiled" if setup.compiled else "eager"]
    said += ["block by block"] * setup.regional
    said += [f"{setup.optimizer} optimizer"] * (setup.optimizer != Setup.optimizer)
    said += ["CUDA graph"] * setup.graph
    said += [f"{setup.segments} segments"] * (setup.segments > 0)
    said += [f"{setup.accumulate} micro-batches"] * (setup.accumulate > 1)
    return ", ".join(said)


def shape_text(row: Mapping[str, Any]) -> str:
    return f"{row['size']}, batch {row['batch']:.0f}, {row['length']:,.0f} tokens"
