"""Kinds `wrapper` and `bucket`: time a step with each wrapper and bucket size, and without communication."""

from __future__ import annotations

from labs_helpers.data_parallel.ddp.bucketed import BucketedDDP
from labs_helpers.data_parallel.study.replicas import TORCH, WRAPPERS, replica
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import Record, Task
from labs_helpers.data_parallel.study.turns import ALONE, race, take

PARTS = (64, 32, 16, 8, 4, 2, 1)  # a bucket holds 1/64 … 1 of all gradients


def measure(task: Task, wrappers: tuple[str, ...] = WRAPPERS) -> list[Record]:
    """Return one record per wrapper, which must include ALONE and "naive". Every rank calls this, and gets the same."""
    steps = {name: replica(task, name) for name in wrappers}
    found = race(task, steps)
    sent = {name: bytes_per_step(step) for name, step in steps.items()}
    for step in steps.values():
        step.remove()
    alone, naive = found[ALONE]["step_ms"], found["naive"]["step_ms"]
    same = task.about | {"kind": "wrapper", "alone_ms": alone, "naive_ms": naive}
    return [
        same
        | {"wrapper": name, "bucket_mb": task.bucket_mb if name in ("bucketed", TORCH) else None}
        | {"exposed_ms": record["step_ms"] - alone, "sent_bytes": sent[name]}
        | record
        for name, record in found.items()
    ]


def measure_buckets(task: Task, sizes_mb: list[float] | None = None) -> list[Record]:
    """Return one record per bucket size, for ours and for DistributedDataParallel.

    sizes_mb: by default from a 64th of the gradients to all of them. On GPUs, only two sizes race at a time, to limit
    the memory; on CPUs, all do.
    """
    sizes = sizes_mb or [task.gradient_mb / part for part in PARTS]
    at_once = 2 if task.device.type == "cuda" else len(sizes)
    groups = [sizes[start : start + at_once] for start in range(0, len(sizes), at_once)]
    return [record for group in groups for record in _buckets(task, group)]


def _buckets(task: Task, sizes: list[float]) -> list[Record]:
    cases = [(name, mb) for mb in sizes for name in ("bucketed", TORCH)]
    steps = {ALONE: replica(task, ALONE), "naive": replica(task, "naive")}
    steps |= {_label(name, mb): replica(task, name, bucket_mb=mb) for name, mb in cases}
    found = race(task, steps)
    same = task.about | {"kind": "bucket"}
    same |= {"alone_ms": found[ALONE]["step_ms"], "naive_ms": found["naive"]["step_ms"]}
    records = []
    for name, mb in cases:
        wrapped = steps[_label(name, mb)].wrapped
        buckets = len(wrapped.buckets) if isinstance(wrapped, BucketedDDP) else None
        records.append(same | {"wrapper": name, "bucket_mb": mb, "buckets": buckets} | found[_label(name, mb)])
    for step in steps.values():
        step.remove()
    return records


def _label(name: str, mb: float) -> str:
    return f"{name}, {mb:g} MB"


def bytes_per_step(step: TrainingStep) -> int | None:
    """Return the bytes that one more step sends, assuming ring algorithms; None if PyTorch sends them."""
    before = step.bytes_sent
    take(step)
    after = step.bytes_sent
    return None if before is None or after is None else after - before
