"""Kind `offload`: time steps with optimizer states or parameters in the CPU's memory, and their copies over PCIe."""

from __future__ import annotations

import os
from collections.abc import Mapping

import torch

from labs_helpers.data_parallel.study.stages import sharded
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.data_parallel.study.turns import race, take
from labs_helpers.measure import trace
from labs_helpers.measure.device_memory import allocated, reset_peak

ROUNDS = 5  # at most, because an update on the CPU takes long
# way → (the way's name in `stages`, the part in the CPU's memory)
WAYS: dict[str, tuple[str, str | None]] = {
    "ZeRO-2": ("ZeRO-2", None),
    "ZeRO-2, optimizer on the CPU": ("ZeRO-2", "optimizer"),
    "ZeRO-3": ("ZeRO-3", None),
    "ZeRO-3, optimizer on the CPU": ("ZeRO-3", "optimizer"),
    "ZeRO-3, parameters on the CPU": ("ZeRO-3", "parameters"),
    "fully_shard": ("fully_shard", None),
    "fully_shard, parameters on the CPU": ("fully_shard", "parameters"),
}


def measure(task: Task) -> list[Record]:
    """Return one record per way; [] without GPUs. Every rank calls this, and gets the same list."""
    if task.device.type != "cuda":
        task.say("offload needs GPUs; skipped")
        return []
    return compare(task, WAYS)


def compare(task: Task, ways: Mapping[str, tuple[str, str | None]]) -> list[Record]:
    """Measure the ways one after another, because each needs the whole memory; return one record per way.

    to_cpu_bytes, to_gpu_bytes: the bytes that rank 0 copies per step between CPU and GPU memory, from the profiler.
    to_cpu_ms, to_gpu_ms: the time of these copies. peak_bytes: the way's peak GPU memory during a step, on the fullest
    rank. threads: the CPU threads of each rank's update. torchrun gives each rank one; here the ranks divide all cores.
    """
    rounds, before = min(ROUNDS, task.options.rounds), torch.get_num_threads()
    torch.set_num_threads(max(1, (os.cpu_count() or 1) * task.about["nodes"] // task.ranks))
    try:
        return [_of(task(rounds=rounds), way, *chosen) for way, chosen in ways.items()]
    finally:
        torch.set_num_threads(before)


def _of(task: Task, way: str, stage: str, offload: str | None) -> Record:
    before = allocated(task.device)
    step = sharded(task, stage, offload=offload)
    found = race(task, {way: step}, alike=[way])[way]
    reset_peak(task.device)
    copies = trace.record(lambda: take(step)).events
    found["peak_bytes"] = None
    if task.device.type == "cuda":
        found["peak_bytes"] = max(gathered(torch.cuda.max_memory_allocated() - before, task.group))
    step.remove()
    found |= gathered(crossed(copies), task.group)[0] | {"threads": torch.get_num_threads()}
    return task.about | {"kind": "offload", "way": way, "stage": stage, "offload": offload} | found


def crossed(events: list[trace.Event]) -> Record:
    """Return the bytes and ms of the copies between CPU and GPU memory, in each direction."""
    found: Record = {}
    for name, direction in (("to_cpu", "DtoH"), ("to_gpu", "HtoD")):
        copies = [event for event in events if event["cat"] == "gpu_memcpy" and direction in event["name"]]
        found[f"{name}_bytes"] = sum(event["args"].get("bytes", 0) for event in copies)
        found[f"{name}_ms"] = 1e-3 * sum(event["dur"] for event in copies)
    return found
