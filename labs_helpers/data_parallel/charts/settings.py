"""What these figures have in common: the roles of wrappers, stages and hooks, and what was measured, in words."""

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
LAYOUTS = {"autocast over float32": "all in float32", "bf16": "all in bfloat16"}  # where autocast has no part in it


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


def one_setting(rows: pandas.DataFrame, *columns: str) -> pandas.DataFrame:
    """The rows that have the values of the last one in these columns."""
    for column in columns:
        if column in rows:
            rows = rows[rows[column] == rows[column].iloc[-1]]
    return rows


def most_ranks(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Of each link the rows with its most ranks."""
    return rows[rows["ranks"] == rows.groupby("link")["ranks"].transform("max")]
