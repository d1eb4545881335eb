"""Kind `scaling`: time a step on 1, 2, 4, … ranks, with a fixed batch per rank (weak) or in total (strong)."""

from __future__ import annotations

import torch.distributed as dist

from labs_helpers.data_parallel.study.replicas import replica
from labs_helpers.data_parallel.study.task import Record, Task, first_ranks, gathered, group_sizes
from labs_helpers.data_parallel.study.turns import ALONE, race

WRAPPER = "bucketed"


def measure(task: Task) -> list[Record]:
    """Return one record per mode and number of ranks. Every rank calls this, and gets the same list.

    Weak: `options.batch` sequences per rank. Strong: batch · world sequences in total; numbers of ranks that do not
    divide this total are skipped. alone_ms: the step of the same ranks running together without communication, which
    includes the slowdown from shared cores and memory.
    """
    world, batch = dist.get_world_size(), task.options.batch
    records: list[Record] = []
    for ranks in group_sizes():
        with first_ranks(ranks) as group:
            found: list[Record] = []
            for mode, each in (("weak", batch), ("strong", batch * world / ranks)):
                if group is not None and each == int(each):
                    found.append(_of(task(group, batch=int(each)), mode))
        records += gathered(found)[0]
    return records


def _of(task: Task, mode: str) -> Record:
    steps = {ALONE: replica(task, ALONE), WRAPPER: replica(task, WRAPPER)}
    found = race(task, steps)
    steps[WRAPPER].remove()
    about = {"kind": "scaling", "mode": mode, "wrapper": WRAPPER, "sequences": task.ranks * task.options.batch}
    return task.about | about | {"alone_ms": found[ALONE]["step_ms"]} | found[WRAPPER]
