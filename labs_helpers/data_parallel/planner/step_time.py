"""How long a training step should take: compute, communication by α and β, and what of it nothing hides.

    step = compute + update + exposed + contention · hidden

Communication in pieces (buckets, blocks) runs beside the forward or the backward pass that makes or needs them, and the
last piece of a backward pass, or the first of a forward pass, has nothing to run beside. What is hidden is not free:
it takes SMs and memory bandwidth from the compute. The host's own time, for launches and hooks, is not modelled.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from labs_helpers.data_parallel.planner.cluster import Cluster
from labs_helpers.tensor_parallel.traffic import Sent

# On 4 H200s DistributedDataParallel hid 42 to 45% of its all-reduces' cost, though the backward pass was nearly four
# times as long as they were.
CONTENTION = 0.5


class StepTime(NamedTuple):
    """Seconds."""

    compute: float  # forward and backward
    update: float  # the optimizer's
    communication: float  # all collectives, one after another
    exposed: float  # of them, what runs alone
    contention: float = CONTENTION  # by how much of its own time hidden communication slows the compute

    @property
    def hidden(self) -> float:
        return self.communication - self.exposed

    @property
    def step(self) -> float:
        return self.compute + self.update + self.exposed + self.contention * self.hidden

    def parts(self) -> list[tuple[str, float, str]]:
        """(name, seconds, formula) of what the step is the sum of, and the step."""
        return [
            ("compute", self.compute, "FLOPs per token · tokens / (efficiency · peak)"),
            ("update", self.update, "bytes that AdamW reads and writes / memory bandwidth"),
            (
                "exposed",
                self.exposed,
                "what runs alone; of k pieces of t beside k of compute, w: max(t, k t − (k − 1) w)",
            ),
            ("hidden", self.hidden, "Σ (messages α + bytes β), less what is exposed"),
            ("step", self.step, f"compute + update + exposed + {self.contention:g} · hidden"),
        ]

    @property
    def share(self) -> float:
        """Of the step without overlap, how much is communication."""
        return self.communication / (self.compute + self.update + self.communication)


def exposed(communication: float, pieces: int, window: float, passes: int = 1) -> float:
    """Seconds of `communication` that cannot run beside `window` seconds of compute, of `passes` passes together.

    Both come in `pieces` equal pieces per pass, piece i of the communication after piece i of the compute. So a pass
    ends with the last piece, or with all of them queued behind the first: max(t, pieces · t − (pieces − 1) · w), where
    t and w are one piece of either. The same holds for pieces gathered before they are needed, read backwards.
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
    """The time of a step that sends `rows`, of `volume.step_volume` (group "dp") and `traffic.step_traffic` ("tp").

    compute: seconds of all forward and backward passes, a third and two thirds of it. accumulate: micro-batches;
    reducing, gathering: in how many of them gradients are reduced and parameters gathered, by default in all. Tensor
    parallelism's collectives stand between products that need them, and hide behind nothing.
    ValueError for negative times, and as `Cluster.seconds`.
    """
    if min(compute, update) < 0 or not 0 <= contention <= 1:
        raise ValueError(f"compute is {compute}, update {update} s, contention {contention}: 0 or more, and 0 to 1")
    groups = {
        "tp": (tp, 1),
        "dp": (dp, tp),
        "node": (cluster.gpus_per_node, 1),
        "nodes": (cluster.nodes, cluster.gpus_per_node),
    }
    share = {"forward": 1 / 3, "backward": 2 / 3}
    alone = together = 0.0
    beside: dict[tuple[str, int], float] = {}  # seconds, by phase and the number of passes
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
        pieces = max(calls[phase, passes].values())  # a gather and a reduction of the same block are one piece
        window = share[phase] * compute * passes / accumulate
        alone += exposed(spent, math.ceil(pieces / passes), window, passes)
    return StepTime(compute, update, together, alone, contention)


def amdahl(share: float, factor: float = math.inf) -> float:
    """How many times as fast a step gets where `share` of it gets `factor` times as fast: 1 / (1 − share + share /
    factor); without a factor, where it vanishes. ValueError for a share outside 0 to 1, or a factor not above 0."""
    if not 0 <= share <= 1 or not factor > 0:
        raise ValueError(f"share is {share} and factor {factor}; 0 to 1, and above 0")
    left = 1 - share + share / factor
    return 1 / left if left else math.inf


def overlap_bound(compute: float, communication: float, window: float | None = None) -> float:
    """How many times as fast overlapping can make a step of compute and then communication: everything hides that fits
    into `window`, by default all of the compute; never more than 2."""
    window = compute if window is None else window
    return (compute + communication) / (compute + max(0.0, communication - window))
