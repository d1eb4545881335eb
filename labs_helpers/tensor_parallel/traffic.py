"""Compute the communication of a training step from a formula, which the tests compare with counted messages.

A = batch · length · width · itemsize is the size of the residual stream in bytes. Per block:

                                forward                       backward
    Megatron                    2 all-reduces of A            2 all-reduces of A
    with sequence parallelism   2 × (all-gather, reduce-scatter), the same bytes, both ways
    naive                       all-gathers of 3 A and of     reduce-scatters of A and of A · hidden / width,
                                A · hidden / width            2 all-reduces of A

On the ring each rank sends (p − 1) / p of a tensor per all-gather or reduce-scatter, and twice that per all-reduce.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from labs_helpers.communication.interface import ring_bytes, ring_messages
from labs_helpers.transformer import TransformerConfig
from labs_helpers.transformer.counts import parameters


class Sent(NamedTuple):
    """A number of `calls` to one collective, each on a whole tensor of `payload` bytes."""

    group: str  # "tp" or "dp"
    phase: str  # "forward", "backward" or "gradients"
    where: str  # "embedding", "blocks", "output", "loss", "norms" or "all parameters"
    operation: str
    calls: int
    payload: int


def step_traffic(
    config: TransformerConfig,
    batch: int,
    length: int,
    tp: int,
    dp: int = 1,
    itemsize: int = 4,
    scheme: str = "megatron",
    sequence_parallel: bool = False,
) -> list[Sent]:
    """Return every collective that one rank calls in a step of a `ParallelTransformer`.

    batch: sequences per model-parallel group. itemsize: bytes per number. (MPI adds 16-bit numbers as float32, so use
    4 there; only all-gathers send 2.) The gradients' all-reduce over dp counts as one call; buckets raise only the
    number of calls.
    """
    A = batch * length * config.width * itemsize
    hidden = batch * length * config.hidden * itemsize
    per_token = batch * length * max(itemsize, 4)  # the loss is computed in float32 or wider
    rows: list[Sent] = []

    def add(phase: str, where: str, operation: str, calls: int, payload: int) -> None:
        rows.append(Sent("tp", phase, where, operation, calls, payload))

    twice = 2 * config.layers  # attention and MLP
    if scheme == "naive":
        add("forward", "embedding", "all_reduce", 1, A)
        add("forward", "blocks", "all_gather", 3 * config.layers, A)  # into wo; out of wo and of down
        add("forward", "blocks", "all_gather", config.layers, hidden)  # into down
        add("backward", "output", "all_reduce", 1, A)
        add("backward", "blocks", "reduce_scatter", config.layers, A)
        add("backward", "blocks", "reduce_scatter", config.layers, hidden)
        add("backward", "blocks", "all_reduce", twice, A)
    elif sequence_parallel:
        add("forward", "embedding", "reduce_scatter", 1, A)
        add("backward", "embedding", "all_gather", 1, A)
        for phase in ("forward", "backward"):
            add(phase, "blocks", "all_gather", twice, A)
            add(phase, "blocks", "reduce_scatter", twice, A)
        add("forward", "output", "all_gather", 1, A)
        add("backward", "output", "reduce_scatter", 1, A)
        add("gradients", "norms", "all_reduce", 1, (twice + 1) * config.width * itemsize)
    else:
        add("forward", "embedding", "all_reduce", 1, A)
        add("forward", "blocks", "all_reduce", twice, A)
        add("backward", "output", "all_reduce", 1, A)
        add("backward", "blocks", "all_reduce", twice, A)
    add("forward", "loss", "all_reduce", 1, per_token)  # the largest logit
    add("forward", "loss", "all_reduce", 1, 2 * per_token)  # the sum of exponentials, and the target's logit
    gradients = parameters_per_rank(config, tp) * itemsize
    rows.append(Sent("dp", "gradients", "all parameters", "all_reduce", 1, gradients))
    return [row for row in rows if (tp if row.group == "tp" else dp) > 1]


def parameters_per_rank(config: TransformerConfig, tp: int) -> int:
    """Return the number of parameters on a rank; matrices are split, norms are whole."""
    norms = (2 * config.layers + 1) * config.width
    return (sum(parameters(config).values()) - norms) // tp + norms


def bytes_sent(rows: Iterable[Sent], tp: int, dp: int = 1) -> int:
    """Return the bytes that leave a rank over a ring."""
    sizes = {"tp": tp, "dp": dp}
    return sum(row.calls * ring_bytes(row.operation, row.payload, sizes[row.group]) for row in rows)


def messages_sent(rows: Iterable[Sent], tp: int, dp: int = 1) -> int:
    """Return the number of messages that leave a rank over a ring."""
    sizes = {"tp": tp, "dp": dp}
    return sum(row.calls * ring_messages(row.operation, sizes[row.group]) for row in rows)
