"""Examine how CUDA's caching allocator fares with a job, on one GPU whose memory is limited to `memory_limit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from labs_helpers.clinic.training import Training
from labs_helpers.communication.silent import SilentCommunication
from labs_helpers.measure.segments import first_refusal

STEPS = 24


def examine_allocator(program: type[Training], seed: int) -> dict[str, Any]:
    """Return the job's findings in STEPS steps, "steps": its peaks of each step, and "refused" if the allocator has
    refused a request although enough memory was free: see `first_refusal`. Call it in a process of its own."""
    alone = SilentCommunication(0, 1)
    alone.device = torch.device("cuda")
    memory = torch.cuda.memory
    memory._record_memory_history("all", context=None, stacks="python")
    job = program(alone, seed)
    whole = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, job.memory_limit / whole))
    steps = []
    try:
        for _ in range(STEPS):
            torch.cuda.reset_peak_memory_stats()
            job.step()
            steps.append(torch.cuda.memory_stats())
    except torch.OutOfMemoryError:
        steps.append(torch.cuda.memory_stats())
    refused = first_refusal(memory._snapshot()["device_traces"][torch.cuda.current_device()])
    memory._record_memory_history(None)
    return found_in(steps, job.memory_limit) | ({"refused": refused} if refused else {})


def found_in(steps: Sequence[Mapping[str, int]], limit: float) -> dict[str, Any]:
    """Return the findings and the peaks of the steps. steps: `memory_stats()` after each, of its own peaks."""
    reserved, allocated, split = (
        [stats[f"{name}_bytes.all.peak"] for stats in steps] for name in ("reserved", "allocated", "inactive_split")
    )
    return {
        "findings": {
            "peak bytes": max(allocated),
            "headroom": 1 - max(allocated) / limit,
            "reserved bytes": max(reserved),
            "split bytes": max(split),
            "refused requests": steps[-1]["num_alloc_retries"],
            "out of memory": steps[-1]["num_ooms"],
        },
        "steps": {"reserved": reserved, "allocated": allocated},
    }
