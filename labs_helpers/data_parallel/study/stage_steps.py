"""Kind `stage_step`: time a step of our and PyTorch's ZeRO stages, of replicas, and without communication."""

from __future__ import annotations

from labs_helpers.data_parallel.study.replicas import WRAPPERS, replica
from labs_helpers.data_parallel.study.stages import STAGE_OF, TORCHS, WAYS, sharded
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.data_parallel.study.turns import ALONE, race


def measure(task: Task, ways: tuple[str, ...] = WAYS) -> list[Record]:
    """Return one record per way. Every rank calls this, and gets the same list.

    ways: must include ALONE. sent_bytes: the bytes per step that our Communication counts, assuming ring algorithms.
    state_bytes: the states on the fullest rank after backward.
    """
    steps = {way: replica(task, way) if way in WRAPPERS else sharded(task, way) for way in ways}
    found = race(task, steps)
    records = []
    for way, step in steps.items():
        before, held = step.bytes_sent, 0
        for name, phase in step.phases():
            if name == "update":
                held = sum(step.held().values())
            phase()
        sent = step.bytes_sent - before if step.bytes_sent is not None and before is not None else None
        step.remove()
        records.append(
            task.about
            | {"kind": "stage_step", "way": way, "stage": STAGE_OF[way]}
            | {"library": "torch" if way in TORCHS else "ours", "alone_ms": found[ALONE]["step_ms"]}
            | {"sent_bytes": sent, "state_bytes": max(gathered(held, task.group))}
            | found[way]
        )
    return records
