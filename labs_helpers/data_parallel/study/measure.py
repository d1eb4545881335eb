"""Run the study's kinds by name on any ranks: a notebook's cluster, torchrun, Slurm or pretended nodes."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.study import (
    accumulate,
    all_reduces,
    compression,
    offload,
    scaling,
    stage_memory,
    stage_steps,
    threads,
    timeline,
    wrappers,
)
from labs_helpers.data_parallel.study.task import Options, Record, Task, gathered

__all__ = ["KINDS", "Options", "Record", "check", "measure", "measure_all"]

KINDS: dict[str, Callable[[Task], list[Record]]] = {
    "all_reduce": all_reduces.measure,
    "wrappers": wrappers.measure,
    "buckets": wrappers.measure_buckets,
    "timeline": timeline.measure,
    "scaling": scaling.measure,
    "accumulate": accumulate.measure,
    "compression": compression.measure,
    "losses": compression.measure_losses,
    "memory": stage_memory.measure,
    "zero": stage_steps.measure,
    "offload": offload.measure,
    "data_parallel": threads.measure,
}


def measure(
    kinds: Sequence[str],
    options: Options,
    say: Callable[[str], None] = lambda text: None,
    at: Callable[[str], None] = lambda text: None,
    save: Callable[[list[Record]], None] = lambda records: None,
) -> list[Record]:
    """Measure some of KINDS on all ranks of torch.distributed; return all records on every rank, which all call it.

    say: reports progress on rank 0. at: called on every rank with each kind's name before it starts. save: receives
    each kind's records on rank 0 immediately, so that a later error loses none. ValueError for an unknown kind.
    """
    check(kinds)
    task = Task.here(options, say)
    records: list[Record] = []
    for kind in kinds:
        at(kind)
        task.say(kind)
        found = gathered(KINDS[kind](task))[0]  # the same list on every rank, including those that did not measure
        records += found
        if found and dist.get_rank() == 0:
            save(found)
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        dist.barrier()
    return records


def measure_all(
    kinds: Sequence[str],
    every: Sequence[Options],
    say: Callable[[str], None] = lambda text: None,
    at: Callable[[str], None] = lambda text: None,
    save: Callable[[list[Record]], None] = lambda records: None,
) -> list[Record]:
    """Run `measure` with the first options, and measure wrappers with the other options too."""
    records = measure(kinds, every[0], say, at, save)
    for options in every[1:] if "wrappers" in kinds else ():
        records += measure(["wrappers"], options, say, at, save)
    return records


def check(kinds: Sequence[str]) -> None:
    """Raise ValueError unless each kind is one of KINDS."""
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not one of {', '.join(KINDS)}")
