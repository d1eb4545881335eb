"""The records of pipelines: which study they belong to, and how a timeline is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labs_helpers.measure.study import Study
from labs_helpers.pipeline.schedule import BACKWARD, FORWARD, INPUT, WEIGHT, Action
from labs_helpers.pipeline.simulate import Bar, Timeline, Times

STUDY = Study("pipeline", "torchrun --nproc-per-node 2 -m labs_helpers.pipeline.race", machine="2x-nvidia-h200")


def bar_record(bar: Bar, begin: float) -> list[Any]:
    """Return [rank, kind, stage, micro-batch, start in ms, stop in ms] of a computation; times count from `begin`."""
    return [bar.rank, *bar.action, round(1e3 * (bar.start - begin), 4), round(1e3 * (bar.stop - begin), 4)]


def timeline(record: Mapping[str, Any], name: str = "") -> Timeline:
    """Return the timeline of a record, in seconds."""
    bars = [
        Bar(rank, Action(kind, stage, micro), 1e-3 * start, 1e-3 * stop)
        for rank, kind, stage, micro, start, stop in record["bars"]
    ]
    return Timeline(name or record["name"], max(bar.rank for bar in bars) + 1, bars)


def recorded_times(record: Mapping[str, Any]) -> Times:
    """Return the simulator's times, in seconds, from a record of each stage's passes."""
    forward, backward, input, weight = (
        [1e-3 * stage[kind] for stage in record["passes_ms"]] for kind in (FORWARD, BACKWARD, INPUT, WEIGHT)
    )
    return Times(forward, input, weight, backward, 1e-3 * record["transfer_ms"])
