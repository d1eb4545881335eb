"""Check exercise 2 of lab 08: one all-reduce per gradient computes its mean."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.averaging import CASES, MIXED, on_replicas
from labs_helpers.data_parallel.lab08.checks.gradients import gradients


@exercise("08/2", "naive: an all-reduce per parameter", points=10, minutes=15, reference=exercises.average_gradients)
def average_gradients(student):
    comparison = gradients()
    for case in (case for case in CASES if case.parts is not MIXED):
        run = on_replicas(comparison, case, student)
        wanted = sum(part.kind != "frozen" for part in case.parts)
        for rank in range(case.size):
            if (made := len(run.of(rank))) < wanted:
                found = f"rank {rank} makes {made} call{'s' * (made != 1)} for {wanted} trained parameters"
                cause = "several gradients share a message, as in exercise 3; here, make one all-reduce per gradient"
                raise Wrong(case.name, f"the values are right, but {found}", cause=cause)
        yield f"{case.name}: {len(run.of(0))} all-reduces, {sum(call.nbytes for call in run.of(0))} bytes"
