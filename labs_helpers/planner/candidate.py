"""Evaluate one layout of a run on a cluster: memory per GPU, and the time of a step with its parts."""

from __future__ import annotations

from typing import NamedTuple

from labs_helpers.pipeline.formulas import schedule_length
from labs_helpers.planner.accounting import LAYOUTS, STAGES, Part, total
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.layout import Layout, Run
from labs_helpers.planner.limits import obstacle
from labs_helpers.planner.micro_batch import MicroBatch, micro_batch
from labs_helpers.planner.pipeline_rank import PipelineRank, memory_parts, pipeline_ranks
from labs_helpers.planner.step_time import StepTime, step_time
from labs_helpers.planner.volume import sends_once, step_volume


class LayoutTime(NamedTuple):
    """Seconds of a step. busy: all micro-batches on the slowest pipeline rank. dp: gradients, weights and update."""

    busy: MicroBatch
    bubble: float
    dp: StepTime

    def parts(self) -> dict[str, float]:
        """Return the step's parts in seconds. tp, cp, pp and dp are exposed communication."""
        return {
            "compute": self.busy.compute,
            "tp": self.busy.tp,
            "cp": self.busy.cp,
            "pp": self.busy.pp,
            "bubble": self.bubble,
            "dp": self.dp.exposed,
            "contention": self.dp.contention * self.dp.hidden,
            "update": self.dp.update,
        }

    @property
    def step(self) -> float:
        return sum(self.parts().values())

    @property
    def bubble_share(self) -> float:
        """Fraction of the step in which a pipeline rank waits before its first or after its last micro-batch."""
        return self.bubble / self.step

    @property
    def exposed_share(self) -> float:
        """Fraction of the step in which a rank only communicates."""
        return (self.busy.tp + self.busy.cp + self.busy.pp + self.dp.exposed) / self.step


class Candidate(NamedTuple):
    """A layout with the memory of its fullest GPU (bytes) and its predicted time."""

    layout: Layout
    parts: list[Part]
    time: LayoutTime
    capacity: float
    mfu: float  # FLOPs without recomputation, as a fraction of the GPUs' peak

    @property
    def memory(self) -> float:
        return total(self.parts)

    @property
    def fits(self) -> bool:
        return self.memory <= self.capacity


def evaluate(run: Run, cluster: Cluster, layout: Layout) -> Candidate:
    """Predict the memory and time of a layout. Raise ValueError, with the reason, if it is impossible."""
    if found := obstacle(run, cluster, layout):
        raise ValueError(found.reason)
    ranks = pipeline_ranks(run, layout)
    parts = max((memory_parts(run, layout, rank) for rank in ranks), key=total)
    time = layout_time(run, cluster, layout, ranks)
    mfu = run.flops() / (time.step * cluster.gpus * cluster.chip.fp16_flops)
    return Candidate(layout, parts, time, float(cluster.chip.memory_bytes), mfu)


def layout_time(run: Run, cluster: Cluster, layout: Layout, ranks: list[PipelineRank]) -> LayoutTime:
    """Return the time of m + (p − 1) / v micro-batches on the slowest rank, of dp's communication, and of the update.

    Gradients can hide behind the last micro-batch's backward pass, and the weights of ZeRO-3 behind every pass.
    """
    m, shared = run.micro_batches(layout), layout.dp * layout.cp
    one = max((micro_batch(run, cluster, layout, rank) for rank in ranks), key=lambda each: each.total)
    idle = schedule_length(m, layout.pp, layout.chunks) - m
    busy = MicroBatch(*(m * seconds for seconds in one))
    # The groups of other pipeline ranks are on other GPUs, so the rank with most parameters takes longest.
    model = max((rank.model for rank in ranks), key=lambda each: each.parameters)
    buckets, states = run.buffers(layout).bucket_bytes, LAYOUTS[run.states]
    rows = []
    if shared > 1:
        rows = step_volume(model, layout.stage, run.states, tp=layout.tp, accumulate=m, bucket_bytes=buckets)
    updated = model.per_rank(layout.tp) / (shared if "optimizer" in STAGES[layout.stage] else 1)
    dp = step_time(
        rows,
        cluster,
        busy.compute,
        states.update_bytes * updated / cluster.chip.bandwidth,
        dp=shared,
        tp=layout.tp,
        accumulate=m,
        reducing=1 if sends_once(layout.stage) else None,
        contention=run.contention,
    )
    return LayoutTime(busy, idle * one.total, dp)
