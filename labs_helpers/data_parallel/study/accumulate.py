"""Kind `accumulate`: time several backward passes per step, with gradients averaged after the last pass or each."""

from __future__ import annotations

from labs_helpers.data_parallel.study.replicas import replica
from labs_helpers.data_parallel.study.step import EVERY, LAST
from labs_helpers.data_parallel.study.task import Record, Task
from labs_helpers.data_parallel.study.turns import ALONE, race

PASSES = (1, 2, 4, 8)


def measure(task: Task) -> list[Record]:
    """Return one record per number of passes and way of averaging. Every rank calls this, and gets the same list."""
    records = []
    for passes in PASSES:
        ways = {LAST: ("bucketed", LAST), EVERY: ("bucketed", EVERY), ALONE: (ALONE, LAST)}
        if passes == 1:
            del ways[EVERY]  # with one pass, both are the same
        steps = {name: replica(task, wrapper, passes=passes, sync=sync) for name, (wrapper, sync) in ways.items()}
        found = race(task, steps)
        for step in steps.values():
            step.remove()
        alone = found.pop(ALONE)["step_ms"]
        same = task.about | {"kind": "accumulate", "micro_batches": passes, "alone_ms": alone}
        records += [same | {"sync": name} | record for name, record in found.items()]
    return records
