"""The study's records: loaded, and of each case the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labs_helpers.measure import records
from labs_helpers.measure.study import Study

if TYPE_CHECKING:
    import pandas

STUDY = Study("data-parallel", "torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.study", "4-core CPU")
load = STUDY.load
ALONE = "no synchronisation"
SETTING = ["size", "dtype", "link", "ranks", "batch", "length"]  # what a step is to be compared within
# What makes a record of a kind another case; the last record of each is the one that counts.
CASES = {
    "all_reduce": ["bytes"],
    "wrapper": ["wrapper"],
    "bucket": ["wrapper", "bucket_mb"],
    "timeline": ["wrapper", "rank"],
    "scaling": ["mode", "wrapper"],
    "accumulate": ["micro_batches", "sync"],
    "compression": ["hook", "error_feedback"],
    "loss_curve": ["optimizer", "hook", "error_feedback"],
    "stage_memory": ["stage", "layout", "rank"],
    "stage_step": ["way"],
    "offload": ["way"],
    "data_parallel": ["way"],
}


def select(rows: pandas.DataFrame, kind: str, **wanted: Any) -> pandas.DataFrame:
    """The last record of each case of a kind, where the columns have the values `wanted` (None: any); in the order in
    which they were measured. ValueError: there is none."""
    # A record of PyTorch's race has no link: its all-reduces are those of one machine.
    rows = rows.assign(link=rows["link"].fillna("1 node") if "link" in rows else "1 node")
    asked = {column: value for column, value in wanted.items() if value is not None}
    found = records.select(rows, kind, [*SETTING, *CASES[kind]], **asked)
    return found.dropna(axis="columns", how="all")


def links(rows: pandas.DataFrame) -> list[str]:
    """The names of the links, slow ones first where the names tell a rate, single nodes last."""

    def speed(link: str) -> tuple[int, float]:
        number, _, unit = link.partition(" ")
        return (0, float(number)) if unit.startswith("Gb/s") else (1, -float(number) if number.isdigit() else 0.0)

    return sorted(dict.fromkeys(rows["link"]), key=speed)
