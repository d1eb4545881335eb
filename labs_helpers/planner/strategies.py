"""The strategies of a plan, with the memory, traffic, and time of each on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from labs_helpers.planner.accounting import DEFAULT, LAYOUTS, STAGES, Part, total
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.levels import hybrid_volume
from labs_helpers.planner.memory import Buffers, step_memory
from labs_helpers.planner.model_size import Model
from labs_helpers.planner.step_time import CONTENTION, StepTime, step_time
from labs_helpers.planner.volume import bytes_sent, formula, sends_once, step_volume
from labs_helpers.tensor_parallel.layouts import why_not
from labs_helpers.tensor_parallel.traffic import Sent, step_traffic

EFFICIENCY = (
    0.4  # fraction of the GPU's dense peak, assumed: eager steps of a 1-billion-parameter model reached 0.37 to 0.42
)
ITEMSIZE = 2  # bytes of an activation


@dataclass(frozen=True)
class Training:
    """A training run, independent of the strategy: `batch` sequences of `length` tokens per GPU and step.

    accumulate: micro-batches per step. A tensor-parallel group computes the batches of its GPUs in micro-batches of the
    same size. efficiency: fraction of the GPU's dense 16-bit peak that the forward and backward passes reach.
    contention: as in `StepTime`. Raise ValueError for impossible values.
    """

    model: Model
    batch: int = 1
    length: int = 2048
    accumulate: int = 1
    layout: str = DEFAULT
    attention: str = "sdpa"
    checkpoint: bool = False
    efficiency: float = EFFICIENCY
    contention: float = CONTENTION
    buffers: Buffers = Buffers()

    def __post_init__(self) -> None:
        for name in ("batch", "length", "accumulate"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.batch % self.accumulate:
            raise ValueError(f"accumulate is {self.accumulate}, but must divide the batch of {self.batch}")
        if not 0 < self.efficiency <= 1:
            raise ValueError(
                f"efficiency is {self.efficiency}; it must be above 0 and at most 1, a fraction of the peak"
            )

    @property
    def micro_batch(self) -> int:
        return self.batch // self.accumulate

    def compute_seconds(self, cluster: Cluster) -> float:
        """Return the seconds of forward and backward passes: FLOPs per token · tokens per GPU / (efficiency · peak)."""
        flops = self.model.flops_per_token(self.length, causal=self.attention != "plain", recomputed=self.checkpoint)
        return flops * self.batch * self.length / (self.efficiency * cluster.chip.fp16_flops)


class Strategy(NamedTuple):
    """dp × tp ranks, with the states of `stage` divided over `sharded` of the dp ranks."""

    name: str
    stage: str
    dp: int
    tp: int = 1
    sharded: int | None = None  # all dp ranks, unless shards stay within a node


class Row(NamedTuple):
    """A strategy evaluated on a cluster. Bytes are per rank, and per step if sent. why_not: set if it is impossible."""

    strategy: Strategy
    parts: list[Part]
    sent: int
    sent_formula: str
    time: StepTime | None
    capacity: float
    why_not: str = ""

    @property
    def memory(self) -> float:
        return total(self.parts)

    @property
    def fits(self) -> bool:
        return not self.why_not and self.memory <= self.capacity


def strategies(cluster: Cluster, model: Model) -> list[Strategy]:
    """Return the strategies, simplest first: data parallelism by stage, then tensor parallelism with DDP or ZeRO-1.

    Tensor-parallel groups stay within a node, because their collectives are exposed and need fast links.
    """
    found = [Strategy(stage, stage, cluster.gpus) for stage in STAGES]
    if cluster.nodes > 1 and cluster.gpus_per_node > 1:
        found.append(Strategy("HYBRID_SHARD", "ZeRO-3", cluster.gpus, sharded=cluster.gpus_per_node))
    for tp in range(2, cluster.gpus_per_node + 1):
        dp = cluster.gpus // tp
        if cluster.gpus_per_node % tp == 0:
            name = f"dp {dp} × tp {tp}" if dp > 1 else f"tp {tp}"
            found.append(Strategy(name, "DDP", dp, tp))
            if dp > 1 and not why_not(model.shape, tp):
                found.append(Strategy(f"{name}, ZeRO-1", "ZeRO-1", dp, tp))
    return found


def evaluate(training: Training, cluster: Cluster, strategy: Strategy) -> Row:
    """Evaluate memory, traffic, and time of one strategy. If tp cannot split the shape, the row explains why."""
    model, capacity = training.model, float(cluster.chip.memory_bytes)
    _, stage, dp, tp, sharded = strategy
    if tp > 1 and (reasons := why_not(model.shape, tp)):
        return Row(strategy, [], 0, "", None, capacity, "; ".join(reasons))
    micro_batches = training.accumulate * tp
    parts = step_memory(
        model,
        stage,
        sharded or dp,
        training.layout,
        tp=tp,
        batch=training.micro_batch,
        length=training.length,
        attention=training.attention,
        checkpoint=training.checkpoint,
        buffers=training.buffers,
    )
    rows, said = _traffic(training, cluster, strategy, micro_batches)
    sizes = {"dp": dp, "tp": tp, "node": cluster.gpus_per_node, "nodes": cluster.nodes}
    layout = LAYOUTS[training.layout]
    updated = model.per_rank(tp) / ((sharded or dp) if "optimizer" in STAGES[stage] else 1)
    time = step_time(
        rows,
        cluster,
        training.compute_seconds(cluster),
        layout.update_bytes * updated / cluster.chip.bandwidth,
        dp=dp,
        tp=tp,
        accumulate=micro_batches,
        reducing=1 if sends_once(stage) else None,
        contention=training.contention,
    )
    return Row(strategy, parts, bytes_sent(rows, sizes), said, time, capacity)


def _traffic(training: Training, cluster: Cluster, strategy: Strategy, micro_batches: int) -> tuple[list[Sent], str]:
    model, layout = training.model, training.layout
    rows: list[Sent] = []
    said = []
    if strategy.sharded:
        rows += hybrid_volume(model, cluster.gpus_per_node, layout, micro_batches)
        said.append("(2 P + G) (g − 1) / g + 2 G / g · (n − 1) / n")
    elif strategy.dp > 1:
        rows += step_volume(
            model,
            strategy.stage,
            layout,
            tp=strategy.tp,
            accumulate=micro_batches,
            bucket_bytes=training.buffers.bucket_bytes,
        )
        said.append(formula(strategy.stage, accumulate=micro_batches))
    if strategy.tp > 1:
        once = step_traffic(model.shape, training.micro_batch, training.length, strategy.tp, itemsize=ITEMSIZE)
        rows += [row._replace(calls=micro_batches * row.calls) for row in once]
        said.append("K ((8 layers + 4) A + loss) (tp − 1) / tp")
    return rows, " + ".join(said)
