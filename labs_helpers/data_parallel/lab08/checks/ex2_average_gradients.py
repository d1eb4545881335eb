"""Exercise 2 of lab 08: the mean of every gradient, by an all-reduce for each."""

from __future__ import annotations

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.averaging import CASES, DTYPES_CASE, expect_no_more, on_replicas


@exercise("08/2", "naive: an all-reduce per parameter", points=10, minutes=15, reference=exercises.average_gradients)
def average_gradients(student):
    for case in (*CASES[:-1], DTYPES_CASE, CASES[-1]):
        run = on_replicas(case, student)
        for rank in range(case.size):
            _expect_one_each(case, run.of(rank), rank)
        yield f"{case.name}: {len(run.of(0))} all-reduces, {sum(call.nbytes for call in run.of(0))} bytes"


def _expect_one_each(case, calls, rank):
    wanted = [part for part in case.parts if part.kind != "frozen"]
    expect_no_more(case, calls, rank)
    if len(calls) < len(wanted):
        few = (
            f"the values are right, but rank {rank} makes {len(calls)} "
            f"call{'s' * (len(calls) != 1)} for {len(wanted)} trained parameters"
        )
        raise Wrong(
            case.name,
            few,
            cause="several gradients travel together, which is exercise 3: here each has an all-reduce of its own",
        )
