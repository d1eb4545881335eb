"""Format a run's results: one table per kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from labs_helpers.data_parallel.study import tables
from labs_helpers.data_parallel.study.records import select
from labs_helpers.data_parallel.study.task import Record
from labs_helpers.measure.records import frame

if TYPE_CHECKING:
    import pandas

TABLES: dict[str, Callable[[pandas.DataFrame], pandas.DataFrame]] = {
    "all_reduce": tables.fits,
    "wrapper": tables.wrapper_table,
    "bucket": lambda rows: select(rows, "bucket")[["link", "wrapper", "bucket_mb", "step_ms", "alone_ms", "naive_ms"]],
    "scaling": tables.scaling_table,
    "accumulate": lambda rows: select(rows, "accumulate")[["link", "micro_batches", "sync", "step_ms", "alone_ms"]],
    "compression": lambda rows: select(rows, "compression")[["link", "hook", "step_ms", "alone_ms", "sent_bytes"]],
    "loss_curve": lambda rows: select(rows, "loss_curve")[["optimizer", "hook", "error_feedback", "validation"]],
    "stage_memory": lambda rows: (
        tables.memory_table(rows)
        .groupby(["layout", "stage"], sort=False)[["counted", "formula", "off"]]
        .agg({"counted": "max", "formula": "max", "off": lambda off: off.abs().max()})
        .reset_index()
    ),
    "stage_step": tables.stage_table,
    "offload": lambda rows: select(rows, "offload")[
        ["way", "ranks", "threads", "step_ms", "update_ms", "to_cpu_bytes", "to_gpu_bytes"]
    ],
    "data_parallel": lambda rows: select(rows, "data_parallel")[["way", "ranks", "step_ms"]],
}


def report(records: list[Record]) -> str:
    """Return the tables of the measured kinds as text."""
    rows = frame(records)
    told = []
    for kind, table in TABLES.items():
        if len(rows) and (rows["kind"] == kind).any():
            text = table(rows).to_string(index=False, float_format="{:.3g}".format, na_rep="–")
            told.append(f"{kind}\n{text}")
    return "\n\n".join(told) or "nothing was measured"
