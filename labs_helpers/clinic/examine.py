"""Examine a training job with the course's instruments, on all its ranks; the result is a dictionary of findings."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stdout
from functools import partial
from statistics import mean
from time import perf_counter
from typing import Any
from zlib import crc32

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from labs_helpers.clinic.training import Training
from labs_helpers.communication.interface import Communication
from labs_helpers.communication.nodes import bytes_between_nodes, fewest_between_nodes, groups_of
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.data_parallel.study.held import plain_bytes
from labs_helpers.measure.memory_timeline import memory_timeline
from labs_helpers.measure.race import TorchRanks
from labs_helpers.measure.step_parts import PARTS, passes_marked, shares, step_parts
from labs_helpers.measure.trace import Event, record

STEPS = 4  # per instrument: as many as the program takes between two reports
Findings = dict[str, Any]


def examine(program: type[Training], group: Communication, seed: int, compare: bool = True) -> Findings:
    """Return the findings of one job, the same on every rank. Every rank calls this.

    `findings.MEANING` says what they mean. Each instrument sees STEPS steps. compare: start the program three more
    times: without communication, with one batch in place of its data, and with batches of twice the size.
    """
    ranks = TorchRanks(dist.group.WORLD)
    job = program(group, seed)
    said = io.StringIO()
    with redirect_stdout(said):
        job.run(STEPS)  # libraries set themselves up, and a factor of the loss finds its size
        found: Findings = {}
        for instrument in INSTRUMENTS.values():
            found |= instrument(job)
    found["lines printed"] = said.getvalue().count("\n") / job.steps
    if compare:
        with redirect_stdout(said):
            found |= _compared(program, job, ranks)
    sums = ranks.gather(contents(job.model.parameters()))
    return together(ranks.gather(found), sums, ranks.gather(job.part))


def _same(batch: Any) -> Any:
    while True:
        yield batch


def _compared(program: type[Training], job: Training, ranks: TorchRanks) -> Findings:
    """Return the ms of the job's fastest step, as others can only add to it, and its variants' relative to it."""
    variants = {
        "ms": job,
        "without communication": program(SilentCommunication(job.group.rank, job.group.size), job.seed),
        "without loading": program(job.group, job.seed),
        "with twice the batch": type("Twice", (program,), {"batch": 2 * program.batch})(job.group, job.seed),
    }
    variants["without loading"].batches = _same(next(variants["without loading"].batches))
    best = dict.fromkeys(variants, float("inf"))
    for _ in range(STEPS + 1):
        for name, variant in variants.items():
            ranks.barrier()
            start = perf_counter()
            variant.step()
            if variant.on_gpu:
                torch.cuda.synchronize()
            best[name] = min(best[name], 1e3 * (perf_counter() - start))
    return {name: ms if name == "ms" else ms / best["ms"] for name, ms in best.items()}


def _counted(job: Training) -> Findings:
    """Count what STEPS steps send, compute and read."""
    for group in job.groups.values():
        group.reset()
    tokens, items = 0, list[int]()
    batches = job.batches

    def counting() -> Any:
        nonlocal tokens
        for batch in batches:
            tokens += batch[0].numel()
            if job.part == 0:  # the ranks that share a model have to read the same data
                items.extend(_hash(sequence) for sequence in batch[0])
            yield batch

    job.batches = counting()
    with FlopCounterMode(display=False) as flops:
        job.run(STEPS)
    job.batches = batches
    calls, payload = job.groups["dp"].calls.total(), job.groups["dp"].payload.total()
    return _between_nodes(job) | {
        "collectives": calls / STEPS,
        "bytes per collective": payload / calls if calls else 0.0,
        "tokens": tokens / STEPS,
        "FLOPs": flops.get_total_flops() / STEPS,
        "items": items,
    }


def _between_nodes(job: Training) -> Findings:
    """Return the bytes that the ranks of a mesh send between and inside nodes, if there are several nodes."""
    if job.group.size <= job.ranks_per_node:
        return {}
    sizes = {axis: group.size for axis, group in job.groups.items()}
    sent = {axis: group.bytes_sent / STEPS for axis, group in job.groups.items()}
    between = sum(bytes_between_nodes(groups_of(sizes), sent, job.ranks_per_node).values())
    return {
        "bytes between nodes": between,
        "bytes inside nodes": job.group.size * sum(sent.values()) - between,
        "avoidable": 1 - fewest_between_nodes(sizes, sent, job.ranks_per_node) / between if between else 0.0,
    }


def _traced(job: Training) -> Findings:
    from torch._dynamo.utils import counters

    compiled = counters["stats"]["unique_graphs"]
    with passes_marked():
        trace = record(partial(job.run, STEPS))  # once to warm up
    return in_trace(trace.events, STEPS) | {
        "compilations": (counters["stats"]["unique_graphs"] - compiled) / (2 * STEPS),
    }


def in_trace(events: list[Event], steps: int) -> Findings:
    """Return what a trace of some steps of any program shows."""
    kernels = [event for event in events if event["cat"] == "kernel"]
    return {
        "parts": shares(step_parts(events)),
        "work": sum(event["dur"] for event in kernels if not event["name"].startswith(("c10d::", "nccl"))) / steps,
        "waits": _waits(events) / steps,
        "us per kernel": mean(event["dur"] for event in kernels) if kernels else 0.0,
    }


def _waits(events: list[Event]) -> int:
    """Count the values that the program read from the device, except inside the optimizer, whose counter lives on the
    CPU."""
    updates = [
        (e["ts"], e["ts"] + e["dur"]) for e in events
        if e["cat"] == "user_annotation" and e["name"].startswith("Optimizer.step#")
    ]  # fmt: skip
    reads = [e["ts"] for e in events if e["cat"] == "cpu_op" and e["name"] == "aten::_local_scalar_dense"]
    return sum(not any(start <= moment <= stop for start, stop in updates) for moment in reads)


def _remembered(job: Training) -> Findings:
    """Return the memory of STEPS steps: its peak, what is in it, and how it grows."""
    held = plain_bytes(job.model, job.optimizer)
    alive: list[int] = []

    def steps(mark: Callable[[str], None]) -> None:
        for number in range(STEPS):
            job.step()
            mark(str(number))

    _, timeline = memory_timeline(steps, before=sum(held.values()), points=sys.maxsize, device=job.device.type)
    at = dict(timeline["points"])
    alive = [_alive_at(at, change) for change, _ in timeline["marks"]]
    growth = (alive[-1] - alive[0]) / (len(alive) - 1)
    return {
        "peak bytes": timeline["peak"],
        "headroom": 1 - timeline["peak"] / job.memory_limit,
        "activations": 1 - sum(held.values()) / timeline["peak"],
        "growth": growth / timeline["peak"],
    }


def _alive_at(points: dict[int, int], change: int) -> int:
    return points[max(at for at in points if at <= change)]


def _checked(job: Training) -> Findings:
    """Compare the parameters' checksums after each of STEPS steps."""
    sums = [contents(job.model.parameters())]
    for _ in range(STEPS):
        job.step()
        sums.append(contents(job.model.parameters()))
    return {"steps without a change": sum(map(list.__eq__, sums, sums[1:])) / STEPS}


INSTRUMENTS: dict[str, Callable[[Training], Findings]] = {
    "trace": _traced,
    "counters": _counted,
    "memory": _remembered,
    "checksums": _checked,
}


def contents(parameters: Iterable[Tensor]) -> list[int]:
    """Return a checksum of each parameter's bits."""
    return [_hash(p) for p in parameters]


def _hash(x: Tensor) -> int:
    return crc32(x.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())


def together(by_rank: list[Findings], sums: list[list[int]], parts_of_model: Sequence[int] = ()) -> Findings:
    """Return one dictionary from those of all ranks: means, but of memory the fullest rank's.

    sums: of `contents`. parts_of_model: which part each rank holds; by default all ranks hold the same.
    """
    held = parts_of_model or [0] * len(sums)
    items = [set(found.pop("items", ())) for found in by_rank]
    parts = [found.pop("parts") for found in by_rank]
    found = {part: mean(of_rank[part] for of_rank in parts) for part in PARTS}
    found |= {name: mean(of_rank[name] for of_rank in by_rank) for name in by_rank[0]}
    for name in {"FLOPs", "work"} & set(found):
        values = [of_rank[name] for of_rank in by_rank]
        if min(values):  # a profiler that may not see a GPU's kernels finds no work
            found[f"spread of {name}"] = max(values) / min(values)
    for name, worst in (("peak bytes", max), ("headroom", min)):
        if name in found:
            found[name] = worst(of_rank[name] for of_rank in by_rank)
    if any(items):
        found["shared data"] = 1 - len(set().union(*items)) / sum(map(len, items))
    return found | {
        "utilization": 1 - found["idle"] - found["data"],
        "replicas that differ": sum(
            len(set(zip(held, values, strict=True))) > len(set(held)) for values in zip(*sums, strict=True)
        ),
    }
