"""Kind `scaling`: the same step on 1, 2, 4 … ranks, with as many sequences per rank (weak) or in all (strong)."""

from __future__ import annotations

import torch.distributed as dist

from labs_helpers.data_parallel.study.replicas import replica
from labs_helpers.data_parallel.study.task import Record, Task, first_ranks, gathered, group_sizes
from labs_helpers.data_parallel.study.turns import ALONE, race

WRAPPER = "bucketed"


def measure(task: Task) -> list[Record]:
    """A record per mode and number of ranks. Every rank calls it; the same list on all.

    Weak: `options.batch` sequences on each rank. Strong: of all ranks together batch · world, on one rank too, so that
    only numbers of ranks that divide it are taken. alone_ms: so many ranks at once without synchronisation: cores and
    memory that they share slow them down, too.
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
