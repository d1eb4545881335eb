"""Summarize one traced step on rank 0: exposed communication, idle time, kernel launches."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING

from labs_helpers.measure.trace import GPU_WORK, Event, covered, launches

if TYPE_CHECKING:
    import pandas


def summary(events: Sequence[Event]) -> dict[str, float]:
    """Return the times of a traced step in ms; {} without GPU work.

    traced_ms: from the first launch to the end of the last kernel. nccl_ms: NCCL's kernels run. exposed_nccl_ms: only
    NCCL's kernels run. idle_ms: nothing runs on the GPU. launched_ms: from the first launch to the last. launches: the
    number of kernels. launch_us: the median time of a launch on the host. Tracing slows a step down, so compare only
    traced steps with each other.
    """
    work = [event for event in events if event.get("cat") in GPU_WORK]
    calls = [event for event in events if event.get("cat") == "cuda_runtime" and "launch" in event["name"].lower()]
    if not work or not calls:
        return {}
    first, last = (pick(event["ts"] for event in calls) for pick in (min, max))
    traced = max(event["ts"] + event["dur"] for event in work) - first
    nccl = [event for event in work if "nccl" in event["name"].lower()]
    other = covered(event for event in work if "nccl" not in event["name"].lower())
    found = {"traced_ms": traced, "nccl_ms": covered(nccl), "exposed_nccl_ms": covered(work) - other,
             "idle_ms": traced - covered(work), "launched_ms": last - first}  # fmt: skip
    found = {name: value / 1e3 for name, value in found.items()}
    return found | {"launches": float(launches(events)), "launch_us": median(event["dur"] for event in calls)}


def table(rows: pandas.DataFrame) -> pandas.DataFrame:
    """Return one row per profiled candidate: the parts of its traced step, and the host's µs per launch."""
    found = rows[rows["traced_ms"].notna()] if "traced_ms" in rows else rows[:0].assign(traced_ms=0.0)
    names = {"traced_ms": "traced ms", "nccl_ms": "NCCL ms", "exposed_nccl_ms": "exposed NCCL ms", "idle_ms": "idle ms",
             "launches": "launches", "launch_us": "µs in a launch"}  # fmt: skip
    shown = found.reindex(columns=["candidate", *names, "launched_ms"]).rename(columns=names)
    return shown.assign(**{"µs per launch": 1e3 * shown.pop("launched_ms") / shown["launches"]})
