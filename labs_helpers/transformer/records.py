"""Select and complete the study's records: rates, and the steps that a figure needs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pandas

from labs_helpers.measure.datasheet import lookup
from labs_helpers.transformer.grids import FIELDS
from labs_helpers.transformer.measure_step import PHASES
from labs_helpers.transformer.setups import Setup

SHAPE = ["size", "batch", "length"]
SETTING = [*SHAPE, *FIELDS]
WHOLE = ["batch", "length", "layers", "segments", "accumulate"]  # float beside other kinds of records
TIMES = [f"{phase}{part}_ms" for phase in PHASES for part in ("", "_p20", "_p80")]
MEASURED = [*TIMES, "peak_bytes", "state_bytes", "launches", "forward_launches", "busy", "gpu_ms", "flops_per_token"]


def with_rates(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows of `load` or `frame` with two more columns: tokens_per_s, and mfu, relative to the FLOP/s that
    the GPU's datasheet gives for 16-bit tensor cores; NaN for other machines."""
    per_second = 1e3 * rows["batch"] * rows["length"] / rows["step_ms"]
    sheets = {name: lookup(name) for name in rows["on.name"].unique()}
    peak = rows["on.name"].map({name: sheet.fp16_flops if sheet else None for name, sheet in sheets.items()})
    return rows.assign(tokens_per_s=per_second, mfu=rows["flops_per_token"] * per_second / peak.astype(float))


def of_setup(rows: pandas.DataFrame, setup: Setup) -> pandas.DataFrame:
    """Return the rows that were measured in this setup."""
    for name, value in dataclasses.asdict(setup).items():
        rows = rows[rows[name] == value]
    return rows


def steps(frame: pandas.DataFrame, setup: Setup | None = None, **wanted: Any) -> pandas.DataFrame:
    """Return the latest step of each shape and setup, in one setup (None: any), where the columns have the values
    `wanted`.

    Returns no rows if there are no such records, or no such column. A value of MEASURED is NaN if it was not measured;
    all are NaN for a step that ran out of memory.
    """
    rows = frame
    for column, value in ({"kind": "step"} | wanted).items():
        rows = rows[rows[column] == value] if column in rows else rows[:0]
    usual = dataclasses.asdict(Setup())  # defaults for what an older record does not name
    rows = rows.assign(**{field: value for field, value in usual.items() if field not in rows})
    rows = rows.reindex(columns=list(dict.fromkeys([*rows, *SHAPE, *WHOLE, *MEASURED])))
    rows = rows.astype(dict.fromkeys(WHOLE, int) | dict.fromkeys(MEASURED, float))
    rows = of_setup(rows, setup) if setup else rows
    return rows.drop_duplicates(SETTING, keep="last").sort_values(["length", "batch"])


def timed(frame: pandas.DataFrame, setup: Setup | None = None, **wanted: Any) -> pandas.DataFrame:
    """Return `steps` that did not run out of memory, with their rates and MFU."""
    rows = steps(frame, setup, **wanted).dropna(subset="step_ms")
    return with_rates(rows.assign(**{"on.name": rows["on.name"].fillna("") if "on.name" in rows else ""}))


def tokens(rows: pandas.DataFrame) -> pandas.Series:
    """Return the tokens per step."""
    return rows["batch"] * rows["length"]


def launch_us(rows: pandas.DataFrame) -> str:
    """Return what a launch costs the host, such as '22 to 31 µs': the time per launch of eager steps in which the
    GPU works less than half of the time. '' without such steps, or if only a trace says how long the GPU works."""
    eager = rows[~rows["compiled"].astype(bool) & ~rows["graph"].astype(bool)].dropna(subset=["gpu_ms", "launches"])
    us = 1e3 * (eager["step_ms"] / eager["launches"])[eager["busy"] < 0.5]
    return " to ".join(dict.fromkeys(f"{one:.0f}" for one in (us.min(), us.max()))) + " µs" if len(us) else ""


def walked_steps(frame: pandas.DataFrame, path: Mapping[str, Setup], **wanted: Any) -> pandas.DataFrame:
    """Return the records along a path of setups, one row per name, at the shape that has the most of them; NaN for
    missing ones. wanted: columns' values."""
    rows = steps(frame, **wanted)
    found = pandas.concat({name: of_setup(rows, setup) for name, setup in path.items()}, names=["remedy"])
    shapes = [shape for _, shape in found.groupby(SHAPE)]
    found = max(shapes, key=len, default=found).droplevel(1)
    return found.reindex(index=list(path), columns=[*SETTING, *MEASURED, "out_of_memory", "on.machine"])


def varied_in(rows: pandas.DataFrame, column: str) -> pandas.DataFrame:
    """Return the largest set of rows that differ only in one column of SETTING, sorted by that column."""
    groups = [group for _, group in rows.groupby([name for name in SETTING if name != column], sort=False)]
    return max(groups, key=len, default=rows).sort_values(column)


def setup_of(row: Mapping[str, Any]) -> Setup:
    """Return the Setup of a record. Beside records of other kinds, its yes and no values may be numbers or objects."""
    return Setup(**{name: type(getattr(Setup(), name))(row[name]) for name in FIELDS})
