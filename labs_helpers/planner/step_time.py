"""Predict the time of a training step from compute, communication (α and β), and exposed communication.

    step = compute + update + exposed + contention · hidden

Communication in pieces (buckets, blocks) overlaps with the forward or backward pass that uses or produces them. Nothing
can hide the last piece of a backward pass, or the first of a forward pass. Hidden communication also has a cost,
because it takes SMs and memory bandwidth from the compute. The host's time for launches and hooks is not modeled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from labs_helpers.planner.cluster import Cluster
from labs_helpers.tensor_parallel.traffic import Sent

# On 4 H200s DistributedDataParallel hid 42 to 45% of the cost of its all-reduces, although the backward pass took
# nearly four times as long as they did.
CONTENTION = 0.5


class StepTime(NamedTuple):
    """Seconds."""

    compute: float  # forward and backward passes
    update: float  # of the optimizer
    communication: float  # all collectives, one after another
    exposed: float  # the part of it that runs alone
    contention: float = CONTENTION  # slowdown of compute by hidden communication, as a fraction of its time

    @property
    def hidden(self) -> float:
        return self.communication - self.exposed

    @property
    def step(self) -> float:
        return self.compute + self.update + self.exposed + self.contention * self.hidden

    def parts(self) -> list[tuple[str, float, str]]:
        """Return (name, seconds, formula) of the step and of its parts."""
        return [
            ("compute", self.compute, "FLOPs per token · tokens / (efficiency · peak)"),
            ("update", self.update, "bytes that AdamW reads and writes / memory bandwidth"),
            (
                "exposed",
                self.exposed,
                "part that runs alone; k pieces of t beside k pieces of compute w: max(t, k t − (k − 1) w)",
            ),
            ("hidden", self.hidden, "Σ (messages α + bytes β), minus the exposed part"),
            ("step", self.step, f"compute + update + exposed + {self.contention:g} · hidden"),
        ]

    @property
    def share(self) -> float:
        """Fraction of a step without overlap that is communication."""
        return self.communication / (self.compute + self.update + self.communication)


def exposed(communication: float, pieces: int, window: float, passes: int = 1) -> float:
    """Return the seconds of `communication` that cannot overlap with `window` seconds of compute, over all `passes`.

    Each pass has `pieces` equal pieces of both, and piece i of the communication follows piece i of the compute. A pass
    therefore ends with the last piece, or with all of them queued after the first: max(t, pieces · t − (pieces − 1) ·
    w), where t and w are one piece of each. Pieces gathered before use give the same result in reverse order.
    """
    if pieces < 1 or not communication:
        return communication
    t, w = communication / passes / pieces, window / passes / pieces
    return passes * max(t, pieces * t - (pieces - 1) * w)


def step_time(
    rows: Iterable[Sent],
    cluster: Cluster,
    compute: float,
    update: float = 0.0,
    *,
    dp: int,
    tp: int = 1,
    accumulate: int = 1,
    reducing: int | None = None,
    gathering: int | None = None,
    overlap: bool = True,
    contention: float = CONTENTION,
) -> StepTime:
    """Return the time of a step that sends `rows` from `volume.step_volume` ("dp") and `traffic.step_traffic` ("tp").

    compute: seconds of all forward (one third) and backward passes (two thirds). accumulate: micro-batches. reducing,
    gathering: number of micro-batches that reduce gradients and gather parameters, by default all. Tensor parallelism's
    collectives run between products that need them and cannot be hidden. Raise ValueError for negative times, and the
    same errors as `Cluster.seconds`.
    """
    if min(compute, update) < 0 or not 0 <= contention <= 1:
        raise ValueError(
            f"compute is {compute} s, update {update} s, contention "
            f"{contention}; times must be at least 0, contention 0 to 1"
        )
    groups = {
        "tp": (tp, 1),
        "dp": (dp, tp),
        "node": (cluster.gpus_per_node, 1),
        "nodes": (cluster.nodes, cluster.gpus_per_node),
    }
    share = {"forward": 1 / 3, "backward": 2 / 3}
    alone = together = 0.0
    beside: dict[tuple[str, int], float] = {}  # seconds by phase and number of passes
    calls: dict[tuple[str, int], Counter[str]] = {}
    for row in rows:
        spent = row.calls * cluster.seconds(row.operation, row.payload, *groups[row.group])
        together += spent
        if overlap and row.group != "tp" and row.phase in share:
            passes = (gathering if row.operation == "all_gather" else reducing) or accumulate
            where = row.phase, passes
            beside[where] = beside.get(where, 0.0) + spent
            calls.setdefault(where, Counter())[row.operation] += row.calls
        else:
            alone += spent
    for (phase, passes), spent in beside.items():
        pieces = max(calls[phase, passes].values())  # a gather and a reduction of the same block count as one piece
        window = share[phase] * compute * passes / accumulate
        alone += exposed(spent, math.ceil(pieces / passes), window, passes)
    return StepTime(compute, update, together, alone, contention)


def amdahl(share: float, factor: float = math.inf) -> float:
    """Return the speedup if `share` of a step becomes `factor` times as fast: 1 / (1 − share + share / factor).

    By default the share vanishes. Raise ValueError for a share outside 0 to 1, or a factor not above 0.
    """
    if not 0 <= share <= 1 or not factor > 0:
        raise ValueError(f"share is {share} and factor is {factor}; share must be 0 to 1, and factor above 0")
    left = 1 - share + share / factor
    return 1 / left if left else math.inf


def overlap_bound(compute: float, communication: float, window: float | None = None) -> float:
    """Return the speedup limit of overlapping communication with compute, at most 2.

    Communication hides as far as it fits into `window`, by default all of the compute.
    """
    window = compute if window is None else window
    return (compute + communication) / (compute + max(0.0, communication - window))
