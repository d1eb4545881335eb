"""Steps on two GPUs: simulated from the passes that one GPU was recorded to take, and as two GPUs were recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from matplotlib.figure import Figure

from labs_helpers.pipeline.charts import draw_timelines
from labs_helpers.pipeline.records import STUDY, recorded_times, timeline
from labs_helpers.pipeline.schedule import Schedule
from labs_helpers.pipeline.schedules import one_f_one_b, zero_bubble
from labs_helpers.pipeline.simulate import Timeline, simulate

LAUNCHES = {False: "from Python", True: "CUDA graphs"}


def recorded_passes(cut: str = "equal blocks", host: int = 0) -> dict[bool, Mapping[str, Any]]:
    """Return the records of the stages' passes on one GPU, launched from Python (False) and as CUDA graphs (True).

    host: 0 or 1; the same command ran on two hosts with the same GPU.
    """
    rows = STUDY.load("nvidia-h200")
    rows = rows[(rows["kind"] == "passes") & (rows["cut"] == cut)]
    rows = rows[rows["on.time"] == sorted(set(rows["on.time"]))[host]]
    return {bool(row["graphs"]): row for row in rows.to_dict("records")}


def steps(cut: str = "equal blocks", host: int = 0, micro_batches: int = 4) -> dict[tuple[str, bool], Timeline]:
    """Return {(name of the schedule, with graphs): its timeline, in seconds}."""
    makers: dict[str, Callable[..., Schedule]] = {"1F1B": one_f_one_b, "ZB-H1": zero_bubble}
    found = {}
    for graphs, record in recorded_passes(cut, host).items():
        for name, make in makers.items():
            schedule = make(record["stages"], micro_batches)
            step = simulate(schedule, recorded_times(record))
            found[name, graphs] = step._replace(name=f"{name}, {LAUNCHES[graphs]}, {1e3 * step.seconds:.0f} ms")
    return found


def draw_launches() -> Figure:
    """Draw 1F1B launched from Python, then 1F1B and ZB-H1 replayed as CUDA graphs, on one time axis."""
    found = steps()
    slow, fast, split = (found[key] for key in (("1F1B", False), ("1F1B", True), ("ZB-H1", True)))
    title = f"Graphs shorten the step by {1 - fast.seconds / slow.seconds:.0%}, ZB-H1 by another "
    return draw_timelines([slow, fast, split], f"{title}{1 - split.seconds / fast.seconds:.0%}", unit="s")


def recorded_race(micro_batches: int = 4, cut: str = "equal blocks") -> dict[str, tuple[float, float]]:
    """Return {candidate: (ms per step on two GPUs, ms that the simulator predicts or NaN)}, PyTorch's first."""
    rows = STUDY.load()
    rows = rows[(rows["kind"] == "race") & (rows["micro_batches"] == micro_batches) & (rows["cut"] == cut)]
    return {
        f"{row['library']}, {row['candidate']}": (row["step_ms"], row["predicted_ms"])
        for row in rows.sort_values("library", kind="stable").to_dict("records")
    }


def draw_two_gpus(micro_batches: int = 4) -> Figure:
    """Draw the recorded timelines of 1F1B, interleaved and ZB-H1, replayed as CUDA graphs on two GPUs."""
    rows = STUDY.load()
    rows = rows[(rows["kind"] == "timeline") & (rows["micro_batches"] == micro_batches) & rows["graphs"].eq(True)]
    rows = rows[rows["cut"] == "equal blocks"]
    found = [timeline(row, f"{row['name']}, {row['step_ms']:.1f} ms") for row in rows.to_dict("records")]
    ms = dict(zip(rows["name"], rows["step_ms"], strict=True))
    title = f"Two H200s: interleaving shortens the step by {1 - ms['interleaved'] / ms['1F1B']:.0%}, ZB-H1 by "
    return draw_timelines(found, f"{title}{1 - ms['ZB-H1'] / ms['1F1B']:.0%}", unit="s")
