"""The study's records: loaded, and of each case the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from labs_helpers.measure.records import of_machine

if TYPE_CHECKING:
    import pandas

STUDY = "data-parallel"
COMMAND = "torchrun --nproc-per-node 2 -m labs_helpers.data_parallel.study"
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


def load(machine: str) -> pandas.DataFrame:
    """The recorded measurements of one machine."""
    return of_machine(STUDY, machine, COMMAND)


def frame(records: list[dict[str, Any]]) -> pandas.DataFrame:
    """Records as `load` gives them."""
    import pandas

    return pandas.json_normalize(records, max_level=1)


def select(rows: pandas.DataFrame, kind: str, **wanted: Any) -> pandas.DataFrame:
    """The last record of each case of a kind, where the columns have the values `wanted` (None: any); in the order in
    which they were measured. ValueError: there is none."""
    found = rows[rows["kind"] == kind] if "kind" in rows else rows[:0]
    asked = {column: value for column, value in wanted.items() if value is not None}
    for column, value in asked.items():
        found = found[found[column] == value] if column in found else found[:0]
    if found.empty:
        told = ", ".join(f"{column} {value}" for column, value in asked.items())
        raise ValueError(f"no records of the kind {kind!r}{' with ' * bool(told)}{told}: see {COMMAND} --help")
    found = found.dropna(axis="columns", how="all")
    # A record of PyTorch's race has no link: its all-reduces are those of one machine.
    found = found.assign(link=found["link"].fillna("1 node") if "link" in found else "1 node")
    keys = [name for name in [*SETTING, *CASES[kind]] if name in found]
    return found.drop_duplicates(keys, keep="last")


def links(rows: pandas.DataFrame) -> list[str]:
    """The names of the links, slow ones first where the names tell a rate, single nodes last."""

    def speed(link: str) -> tuple[int, float]:
        number, _, unit = link.partition(" ")
        return (0, float(number)) if unit.startswith("Gb/s") else (1, -float(number) if number.isdigit() else 0.0)

    return sorted(dict.fromkeys(rows["link"]), key=speed)
