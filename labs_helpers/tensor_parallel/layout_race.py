"""The study's work on its ranks: time the steps of all variants in turns, and count their bytes and memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from torch import Tensor

from labs_helpers.measure.peak_memory import Alive
from labs_helpers.measure.race import Timings, disagreements, in_turns, record_of, slowest, timings
from labs_helpers.tensor_parallel import traffic
from labs_helpers.tensor_parallel.placement import nodes_of_groups
from labs_helpers.tensor_parallel.variants import Step, Task, Variant
from labs_helpers.transformer.train import adamw

SAME_LOSS = 2e-5  # relative, in float32; each layout adds up in a different order

Record = dict[str, Any]


def race(task: Task, variants: Sequence[Variant], ranks_per_node: int, rounds: int) -> list[Record]:
    """Time all variants, and return one record per variant on rank 0, [] elsewhere; every rank of the task calls this.

    A round runs one step of each variant, and one step of compute alone for each kind of shard. Times are medians in
    ms, of the slowest rank and of every rank. alone_ms: compute alone. Raises RuntimeError, before anything is timed,
    if a group is on the wrong nodes or a variant's loss differs from the first one's.
    """
    steps = [Step(task, variant, ranks_per_node) for variant in variants]
    losses = {variant: step.mean_loss() for variant, step in zip(variants, steps, strict=True)}
    for variant, said in disagreements(losses, SAME_LOSS).items():
        raise RuntimeError(f"{variant}: the loss is {said}")
    alone = {_shard(variant): Step(task, variant, ranks_per_node, way="silent") for variant in variants}
    for step in alone.values():
        step.run()
    racing = [*steps, *alone.values()]
    taken = in_turns({number: step.timed for number, step in enumerate(racing)}, rounds)
    mine = [timings(samples) for samples in taken.values()]
    for step in racing:
        step.free()
    gathered: list[list[Timings]] | None = task.comm.gather(mine)
    if gathered is None:
        return []
    by_step = list(zip(*gathered, strict=True))
    compute = {shard: slowest(by_rank) for shard, by_rank in zip(alone, by_step[len(steps) :], strict=True)}
    records = []
    for (variant, loss), by_rank in zip(losses.items(), by_step, strict=False):
        nodes = nodes_of_groups(variant.dp, variant.tp, variant.placement, ranks_per_node)
        records.append(
            {"kind": "step", **asdict(variant), "tp_nodes": nodes["tp"], "dp_nodes": nodes["dp"]}
            | {"loss": loss, "rounds": rounds, "alone_ms": compute[_shard(variant)]["step"].median_ms}
            | {name: value for name, value in record_of(slowest(by_rank)).items() if name != "runs"}
            | {f"{name}_ms_by_rank": [of_rank[name].median_ms for of_rank in by_rank] for name in by_rank[0]}
        )
    return records


def _shard(variant: Variant) -> tuple[Any, ...]:
    """Return the settings on which a rank's compute depends."""
    return variant.tp, variant.scheme, variant.sequence_parallel


def count(task: Task, variants: Sequence[Variant], ranks_per_node: int) -> list[Record]:
    """Count a step's communication and memory; return one record per variant on rank 0, [] elsewhere.

    Every rank calls this. A record has the bytes and messages that leave each rank, counted with the course's own
    collectives and by formula. It also has the bytes on the rank that holds the most: parameters, gradients, AdamW's
    moments, and the peak that one step adds.
    """
    records = []
    for variant in variants:
        step = Step(task, variant, ranks_per_node, way="own")
        step.run()
        step.reset()
        step.run()
        sent = {"tp_bytes": step.tp.bytes_sent, "dp_bytes": step.dp.bytes_sent}
        sent |= {"tp_messages": step.tp.messages_sent, "dp_messages": step.dp.messages_sent}
        held = _held(step)
        by_rank = task.comm.gather((sent, held))
        step.free()
        if by_rank is not None:
            records.append(
                {"kind": "count", **asdict(variant), "buckets": len(step.average.buckets)}
                | {f"{name}_by_rank": [of_rank[name] for of_rank, _ in by_rank] for name in sent}
                | {f"{name}_by_formula": value for name, value in _by_formula(step).items()}
                | {name: max(of_rank[name] for _, of_rank in by_rank) for name in held}
            )
    return records


def _by_formula(step: Step) -> dict[str, int]:
    """Return the bytes and messages that leave a rank per step in each group, by formula."""
    variant = step.variant
    sequences, length = step.tokens.shape
    itemsize = step.model.norm.weight.itemsize
    how: dict[str, Any] = {"scheme": variant.scheme, "sequence_parallel": variant.sequence_parallel}
    rows = traffic.step_traffic(step.task.config, sequences, length, variant.tp, variant.dp, itemsize, **how)
    told = {}
    for group in ("tp", "dp"):
        own = [row for row in rows if row.group == group]
        told[f"{group}_bytes"] = traffic.bytes_sent(own, variant.tp, variant.dp)
        told[f"{group}_messages"] = traffic.messages_sent(own, variant.tp, variant.dp)
    told["dp_messages"] *= len(step.average.buckets)  # the formula counts all gradients as one call
    return told


def _held(step: Step) -> dict[str, int]:
    """Return the bytes that a rank holds, by kind, after a step. Measuring the peak makes this step slow."""
    parameters = list(step.model.parameters())
    gradients = [p.grad for p in parameters if p.grad is not None]
    optimizer = adamw(step.model, lr=0.0)
    optimizer.step()  # creates the moments; lr 0 leaves the weights unchanged
    moments = [t for state in optimizer.state.values() for t in state.values() if isinstance(t, Tensor) and t.ndim]
    with Alive([*parameters, *gradients, *moments, step.tokens, step.targets]) as alive:
        step.run()
    tensors: dict[str, Sequence[Tensor]] = {"parameter": parameters, "gradient": gradients, "optimizer": moments}
    held = {f"{name}_bytes": sum(t.nbytes for t in some) for name, some in tensors.items()}
    return held | {"activation_bytes": alive.peak}
