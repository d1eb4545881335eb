"""Explain why a layout is impossible, before its memory and time are computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from labs_helpers.pipeline.formulas import schedule_length
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.layers_per_rank import cut
from labs_helpers.planner.layout import Layout, Run
from labs_helpers.tensor_parallel.layouts import why_not

BESIDE_A_PIPELINE = ("DDP", "ZeRO-1")  # higher stages would reduce gradients or gather weights in every micro-batch


class Obstacle(NamedTuple):
    """Why a layout is impossible. kind: one word to sum up by, such as "batch" or "layers". reason: with numbers."""

    kind: str
    reason: str


def obstacle(run: Run, cluster: Cluster, layout: Layout) -> Obstacle | None:
    """Return the first reason why a layout is impossible, or None if it is possible."""
    if layout.gpus != cluster.gpus:
        return Obstacle("GPUs", f"{layout} has {layout.gpus} GPUs, but the cluster has {cluster.gpus}")
    per_node = cluster.gpus_per_node
    if layout.tp > per_node:
        return Obstacle("node", f"tp {layout.tp} leaves the node of {per_node} GPUs")
    if per_node % layout.tp:
        return Obstacle("node", f"tp {layout.tp} does not divide the node of {per_node} GPUs")
    if run.length % layout.cp:
        return Obstacle("tensors", f"cp {layout.cp} does not divide length {run.length}")
    length = run.length // layout.cp if layout.sequence_parallel else None
    if reasons := why_not(run.model.shape, layout.tp, length):
        return Obstacle("tensors", reasons[0])
    if layout.pp > 1 and layout.stage not in BESIDE_A_PIPELINE:
        return Obstacle("stage", f"{layout.stage} beside pp {layout.pp}; with a pipeline there are DDP and ZeRO-1")
    trials: tuple[tuple[str, Callable[[], object]], ...] = (
        ("batch", lambda: schedule_length(run.micro_batches(layout), layout.pp, layout.chunks)),
        ("layers", lambda: cut(run.model.shape.layers, layout.pp, layout.chunks)),
        ("node", lambda: cluster.seconds("all_reduce", 1, layout.dp * layout.cp, layout.tp)),
        ("node", lambda: cluster.seconds("all_gather", 1, layout.cp, layout.tp)),
    )
    for kind, trial in trials:
        try:
            trial()
        except ValueError as error:
            return Obstacle(kind, str(error))
    return None
