"""Predict the time that one micro-batch takes on one pipeline rank, forward and backward.

    block = products / (efficiency · peak) + bytes of everything else / memory bandwidth + exposed collectives

The backward pass takes twice the forward pass; a checkpointed block runs forward once more. Norms, residual sums,
activation functions and plain attention's scores move bytes through memory at the datasheet's bandwidth.
"""

from __future__ import annotations

from typing import NamedTuple

from labs_helpers.measure.datasheet import Datasheet
from labs_helpers.planner.accounting import LAYOUTS
from labs_helpers.planner.cluster import Cluster
from labs_helpers.planner.layout import Layout, Run
from labs_helpers.planner.memory import ITEMSIZE
from labs_helpers.planner.pipeline_rank import PipelineRank

# Fraction of the peak by FLOPs counted as 3 times the forward pass: cuDNN's causal attention over 8,192 tokens with
# heads of 128 in bfloat16 on an H200 took 0.94 ms forward and 2.7 ms backward, which is 0.45.
FUSED_ATTENTION = 0.45
WHOLE_PASSES = 10  # reads and writes of the residual stream per block: two norms (2 each), two residual sums (3 each)
SPLIT_PASSES = 3  # reads of gate and up, and the write of their product
TILE = 256 * 128  # elements of an output that one multiprocessor computes at a time, as in cuBLAS's large kernels
# Accesses to plain attention's scores: the product writes, softmax and dropout read and write, the next product reads.
SCORE_PASSES = 6


class MicroBatch(NamedTuple):
    """Seconds of one micro-batch on one pipeline rank; all of its communication is exposed."""

    compute: float
    tp: float = 0.0
    cp: float = 0.0
    pp: float = 0.0

    @property
    def total(self) -> float:
        return sum(self)


def micro_batch(run: Run, cluster: Cluster, layout: Layout, rank: PipelineRank) -> MicroBatch:
    """Return the seconds of a micro-batch's forward and backward pass on one pipeline rank."""
    shape, chip = run.model.shape, cluster.chip
    tokens = run.tokens(layout)
    head = 3 * product_seconds(run, chip, tokens, shape.vocabulary / layout.tp, shape.width) if rank.head else 0.0
    # Weight gradients are added to those of earlier micro-batches.
    added = 2 * LAYOUTS[run.states].gradients * rank.model.per_rank(layout.tp) / chip.bandwidth
    forwards = 4 if layout.checkpoint else 3
    compute = forwards * rank.layers * forward_seconds(run, cluster, layout) + head
    return MicroBatch(
        run.model.scale * compute + added,
        rank.layers * _tensor_parallel(cluster, layout, ITEMSIZE * tokens * shape.width),
        rank.layers * _context_parallel(run, cluster, layout),
        2 * layout.chunks * message_seconds(cluster, layout, ITEMSIZE * tokens * shape.width),
    )


def forward_seconds(run: Run, cluster: Cluster, layout: Layout) -> float:
    """Return the seconds that one block's forward pass computes, without communication."""
    shape, chip, tp = run.model.shape, cluster.chip, layout.tp
    tokens = run.tokens(layout)
    qkv = shape.width + 2 * shape.key_value_heads * shape.head_dim
    products = sum(
        product_seconds(run, chip, tokens, columns, inner)
        for columns, inner in (
            (qkv / tp, shape.width), (shape.width, shape.width / tp),
            (2 * shape.hidden / tp, shape.width), (shape.width, shape.hidden / tp),
        )
    )  # fmt: skip
    scores = 4 * tokens * run.length * shape.width / tp  # FLOPs of all L × L; a causal kernel computes half
    moved = tokens * WHOLE_PASSES * ITEMSIZE * shape.width / (tp if layout.sequence_parallel else 1)
    moved += tokens * SPLIT_PASSES * ITEMSIZE * shape.hidden / tp
    if run.attention == "plain":
        seconds = scores / (run.efficiency * chip.fp16_flops)
        moved += tokens * SCORE_PASSES * ITEMSIZE * shape.heads * run.length / tp
    else:
        seconds = scores / 2 / (FUSED_ATTENTION * chip.fp16_flops)
    return products + seconds + moved / chip.bandwidth


def product_seconds(run: Run, chip: Datasheet, rows: float, columns: float, inner: float) -> float:
    """Return the seconds of a product with rows × columns results, summed over `inner`.

    Multiprocessors compute tiles in waves, and the last wave is on average half empty: a product of few tiles takes
    longer per FLOP.
    """
    half_a_wave = 0.5 * TILE * chip.multiprocessors
    return 2 * (rows * columns + half_a_wave) * inner / (run.efficiency * chip.fp16_flops)


def _tensor_parallel(cluster: Cluster, layout: Layout, nbytes: float) -> float:
    """Return the seconds of one block's collectives: 2 all-reduces per pass.

    With sequence parallelism an all-gather and a reduce-scatter replace each and together send the same bytes.
    """
    if layout.tp == 1:
        return 0.0
    passes = 3 if layout.checkpoint else 2
    return 2 * passes * cluster.seconds("all_reduce", nbytes, layout.tp)


def _context_parallel(run: Run, cluster: Cluster, layout: Layout) -> float:
    """Return the seconds of one block's gathers of K and V over cp, whose gradients are reduce-scattered (Llama 3)."""
    if layout.cp == 1:
        return 0.0
    shape = run.model.shape
    kv = 2 * ITEMSIZE * layout.micro_batch * run.length * shape.key_value_heads * shape.head_dim / layout.tp
    gather = cluster.seconds("all_gather", kv, layout.cp, layout.tp)
    scatter = cluster.seconds("reduce_scatter", kv, layout.cp, layout.tp)
    return (2 + layout.checkpoint) * gather + scatter


def message_seconds(cluster: Cluster, layout: Layout, nbytes: float) -> float:
    """Return the seconds of a message of `nbytes` from one pipeline rank to the next.

    Each of the tp ranks sends its share. Without sequence parallelism, all-gathers inside the receiving node complete
    it (scatter/gather of Narayanan et al., 2021). GPUs whose neighbors are on another node share the node's cable.
    """
    if layout.pp == 1:
        return 0.0
    share, stride = nbytes / layout.tp, layout.gpus // layout.pp
    if stride * layout.pp > cluster.gpus_per_node:
        seconds = cluster.between.alpha + min(stride, cluster.gpus_per_node) * share * cluster.between.beta
    else:
        seconds = cluster.inside.alpha + share * cluster.inside.beta
    if layout.tp > 1 and not layout.sequence_parallel:
        seconds += cluster.seconds("all_gather", nbytes, layout.tp)
    return seconds
