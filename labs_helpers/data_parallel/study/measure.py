"""All kinds by name, for whoever has ranks: a notebook's cluster, torchrun, Slurm, pretended nodes."""

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
    """The records of some of KINDS, on all ranks of torch.distributed: every rank calls it, and gets all of them.

    say: hears of progress on rank 0. at: hears on every rank of what begins. save: is given each kind's records on
    rank 0 as soon as there are any, so that an error later loses none. ValueError for another kind.
    """
    check(kinds)
    task = Task.here(options, say)
    records: list[Record] = []
    for kind in kinds:
        at(kind)
        task.say(kind)
        found = gathered(KINDS[kind](task))[0]  # the same list on all, whoever has measured
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
    """`measure` with the first options, and wrappers with the others too."""
    records = measure(kinds, every[0], say, at, save)
    for options in every[1:] if "wrappers" in kinds else ():
        records += measure(["wrappers"], options, say, at, save)
    return records


def check(kinds: Sequence[str]) -> None:
    """ValueError unless each is one of KINDS."""
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is not one of {', '.join(KINDS)}")
