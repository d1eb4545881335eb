"""The part of a model that one pipeline rank holds, and the activations that it keeps.

Bytes of activations per block follow Korthikanti et al., "Reducing activation recomputation in large transformer
models", 2022, for kernels that keep 16-bit tensors: each of the B · L · W elements takes 8 bytes for both norms and
their outputs, which sequence parallelism splits, and in GPT's shape 24 more, which tensor parallelism splits. The masks
of dropout count only in plain attention. `memory.activations` counts this course's own model, whose norms keep float32.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from labs_helpers.pipeline.formulas import in_flight
from labs_helpers.planner.accounting import Part, states
from labs_helpers.planner.layers_per_rank import cut
from labs_helpers.planner.layout import Layout, Run
from labs_helpers.planner.memory import ITEMSIZE, buffer_parts
from labs_helpers.planner.model_size import Model

SCORE_BYTES = 5  # per element of the L × L scores: the softmax's output, dropout's mask and dropout's output


class PipelineRank(NamedTuple):
    """One pipeline rank. model: its layers, with the parameters of embedding and head where the rank holds them."""

    layers: int
    head: bool
    in_flight: float  # micro-batches
    model: Model


def pipeline_ranks(run: Run, layout: Layout) -> list[PipelineRank]:
    """Return the ranks that may need the most time or memory: the first two and the last.

    The ranks between have as many layers as the second and keep fewer activations. A tied head on another rank than
    the embedding is a copy of it. Raise ValueError if the layout divides neither layers nor batch.
    """
    m, p = run.micro_batches(layout), layout.pp
    layers = cut(run.model.shape.layers, p, layout.chunks)
    vocabulary = run.model.shape.vocabulary * run.model.shape.width * run.model.scale
    block = run.model.per_block()
    found = []
    for index in sorted({0, min(1, p - 1), p - 1}):
        model = run.model
        if p > 1:
            outside = vocabulary * ((index == 0) + (index == p - 1))
            shape = replace(model.shape, layers=max(1, layers[index]))
            model = Model(layers[index] * block + outside, shape)
        kept = in_flight(m, p, layout.chunks, index)
        found.append(PipelineRank(layers[index], index == p - 1, kept, model))
    return found


def memory_parts(run: Run, layout: Layout, rank: PipelineRank) -> list[Part]:
    """Return the parts of the peak memory of one GPU of a pipeline rank, in bytes."""
    ranks = layout.dp * layout.cp
    parts = states(rank.model.per_rank(layout.tp), layout.stage, ranks, run.states)
    if ranks > 1:
        parts += buffer_parts(rank.model, layout.stage, run.states, layout.tp, run.buffers(layout))
    return [*parts, kept_activations(run, layout, rank)]


def kept_activations(run: Run, layout: Layout, rank: PipelineRank) -> Part:
    """Return the activations at the peak: of all blocks for the micro-batches in flight, and the float32 logits."""
    shape = run.model.shape
    tokens = run.tokens(layout)
    block = block_bytes(run, layout)
    logits = 3 * 4 * tokens * shape.vocabulary / layout.tp if rank.head else 0.0  # log-softmax, and two gradients
    if not layout.checkpoint:
        return Part(
            "activations",
            rank.in_flight * rank.layers * block + logits,
            f"{rank.in_flight:g} micro-batches · {rank.layers} blocks" + " + 3 · 4 B L V" * rank.head,
        )
    inputs = ITEMSIZE * tokens * shape.width / (layout.tp if layout.sequence_parallel else 1)
    return Part(
        "activations",
        rank.in_flight * rank.layers * inputs + max(block, logits),
        f"{rank.in_flight:g} micro-batches · {rank.layers} inputs + one block" + ", or 3 · 4 B L V" * rank.head,
    )


def block_bytes(run: Run, layout: Layout) -> float:
    """Return the bytes that one block keeps of one micro-batch, on one GPU."""
    shape = run.model.shape
    tokens = run.tokens(layout)
    kv = shape.key_value_heads / shape.heads
    norms = 4 * ITEMSIZE * shape.width
    # Queries, attention's output, keys and values; gate, up and their product.
    split = ITEMSIZE * ((2 + 2 * kv) * shape.width + 3 * shape.hidden)
    if run.attention == "plain":
        split += SCORE_BYTES * shape.heads * run.length
    return tokens * (norms / (layout.tp if layout.sequence_parallel else 1) + split / layout.tp)
