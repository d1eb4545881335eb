"""Kind `stage_step`: a step in every stage of ZeRO, ours and PyTorch's, beside replicas and no synchronisation."""

from __future__ import annotations

from labs_helpers.data_parallel.study.replicas import WRAPPERS, replica
from labs_helpers.data_parallel.study.stages import STAGE_OF, TORCHS, WAYS, sharded
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.data_parallel.study.turns import ALONE, race


def measure(task: Task, ways: tuple[str, ...] = WAYS) -> list[Record]:
    """A record per way; ALONE has to be among them. Every rank calls it; the same list on all.

    sent_bytes: of a step, by the ring, as our own count them. state_bytes: of the rank with the most, when backward has
    made the gradients.
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
