"""Load the study's records, and select the last record of each case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labs_helpers.measure import records
from labs_helpers.measure.study import Study

if TYPE_CHECKING:
    import pandas

STUDY = Study("data-parallel", "torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.study", "4-core CPU")
load = STUDY.load
ALONE = "no synchronisation"
SETTING = ["size", "dtype", "link", "ranks", "batch", "length"]  # steps are compared only within the same setting
# The columns that distinguish the cases of each kind; the last record of a case counts.
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
    """Return the last record of each case of a kind, in the order of measurement.

    wanted: values that columns must have; None allows any value. ValueError without such records.
    """
    # A record of the race has no link, because it runs on one machine.
    rows = rows.assign(link=rows["link"].fillna("1 node") if "link" in rows else "1 node")
    asked = {column: value for column, value in wanted.items() if value is not None}
    found = records.select(rows, kind, [*SETTING, *CASES[kind]], **asked)
    return found.dropna(axis="columns", how="all")


def links(rows: pandas.DataFrame) -> list[str]:
    """Return the names of the links: those with a rate first, slow to fast, and single nodes last."""

    def speed(link: str) -> tuple[int, float]:
        number, _, unit = link.partition(" ")
        return (0, float(number)) if unit.startswith("Gb/s") else (1, -float(number) if number.isdigit() else 0.0)

    return sorted(dict.fromkeys(rows["link"]), key=speed)
