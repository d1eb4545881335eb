"""Check exercise 3 of lab 08: one all-reduce per dtype computes all means, and every .grad is a view of its result."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.averaging import CASES, on_replicas
from labs_helpers.data_parallel.lab08.checks.gradients import gradients

LATENCY = "every call pays the latency α again: put all gradients of a dtype into one tensor"
COPIED = "each .grad was copied out of the flat tensor; `parameter.grad = part.view(parameter.shape)` copies nothing"


@exercise("08/3", "flat: one all-reduce", points=15, minutes=15, reference=exercises.flat_average)
def flat_average(student):
    comparison = gradients()
    for case in CASES:
        run = on_replicas(comparison, case, student)
        trained = [part for part in case.parts if part.kind != "frozen"]
        kinds = {part.dtype for part in trained}
        for rank, (_, memory) in enumerate(run.results):
            right, made = f"the values are right, but rank {rank}", len(run.of(rank))
            if made > len(kinds):
                raise Wrong(case.name, f"{right} makes {made} calls; {len(kinds)} is enough", cause=LATENCY)
            for dtype in kinds:
                places = [memory[part.name] for part in trained if part.dtype == dtype]
                if len(set(places)) > 1:
                    cause = COPIED if len(set(places)) == len(places) else ""
                    raise Wrong(case.name, f"{right}'s gradients are not views of one flat tensor", cause=cause)
        calls = run.of(0)
        yield f"{case.name}: {len(calls)} call{'s' * (len(calls) > 1)} of {sum(call.nbytes for call in calls)} bytes"
