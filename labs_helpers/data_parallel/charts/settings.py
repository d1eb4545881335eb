"""Roles of wrappers, stages and hooks in the figures, and descriptions of the measured settings."""

from __future__ import annotations

import pandas

from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.draw.curves import Curves, recorded_on
from labs_helpers.draw.words import short

WRAPPERS = Curves(
    {
        ALONE: "result",
        "naive": "naive",
        "flat": 4,
        "overlapped": 2,
        "bucketed": "ours",
        "DistributedDataParallel": "theirs",
    }
)
STAGES = Curves({"DDP": 0, "ZeRO-1": 2, "ZeRO-2": 4, "ZeRO-3": 1, "SHARD_GRAD_OP": 3})
HOOKS = Curves({"mean": "result", "top-k 1%": 1, "top-k 10%": 4, "int8": 2, "PowerSGD": 3})
LAYOUTS = {"autocast over float32": "all in float32", "bf16": "all in bfloat16"}  # layouts without autocast


def setting_of(rows: pandas.DataFrame, batch: bool = True) -> str:
    """Describe the common setting: '2 ranks, 3.5 M parameters, 2 × 128 tokens per rank, 4-core CPU (recorded)'.

    A value that differs between records is left out. batch: whether to give the tokens per rank.
    """
    first = rows.iloc[0]
    ranks = sorted(rows["ranks"].unique())
    told = [f"{' and '.join(f'{n:.0f}' for n in ranks)} ranks"] if len(ranks) < 3 else []
    if "parameters" in rows:
        told.append(f"{short(first['parameters'])} parameters")
    if batch and rows["batch"].nunique() == 1:
        told.append(f"{first['batch']:.0f} × {first['length']:.0f} tokens per rank")
    return ", ".join(told) + recorded_on(rows)


def what_ranks_are(rows: pandas.DataFrame) -> str:
    """Return 'GPUs', or 'ranks' if the records come from CPUs."""
    return "ranks" if "on.device" in rows and (rows["on.device"] == "cpu").all() else "GPUs"


def one_setting(rows: pandas.DataFrame, *columns: str) -> pandas.DataFrame:
    """Return the rows that agree with the last row in these columns."""
    for column in columns:
        if column in rows:
            rows = rows[rows[column] == rows[column].iloc[-1]]
    return rows


def most_ranks(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return the rows with the largest number of ranks on each link."""
    return rows[rows["ranks"] == rows.groupby("link")["ranks"].transform("max")]
