"""Exercise 3 of lab 08: the mean of all gradients by one all-reduce per dtype, and gradients that are views of it."""

from __future__ import annotations

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.averaging import (
    CASES,
    DTYPES_CASE,
    MIXED_CASE,
    expect_no_more,
    on_replicas,
)

COPIED = (
    "each .grad has memory of its own: it was copied out of the flat tensor; "
    "`parameter.grad = part.view(parameter.shape)` needs no copy"
)


@exercise("08/3", "flat: one all-reduce", points=15, minutes=15, reference=exercises.flat_average)
def flat_average(student):
    for case in (*CASES[:-1], MIXED_CASE, DTYPES_CASE, CASES[-1]):
        run = on_replicas(case, student)
        kinds = {part.dtype for part in case.parts if part.kind != "frozen"}
        for rank in range(case.size):
            calls, memory = run.of(rank), run.results[rank][2]
            expect_no_more(case, calls, rank)
            if len(calls) > len(kinds):
                cause = "every call costs the latency of a message anew: all gradients of a dtype go into one tensor"
                raise Wrong(
                    case.name,
                    f"the values are right, but rank {rank} makes {len(calls)} calls; {len(kinds)} is enough",
                    cause=cause,
                )
            for dtype in kinds:
                _expect_views(
                    case,
                    rank,
                    [memory[part.name] for part in case.parts if part.dtype == dtype and part.kind != "frozen"],
                )
        yield (
            f"{case.name}: {len(run.of(0))} call{'s' * (len(run.of(0)) > 1)} of "
            f"{sum(call.nbytes for call in run.of(0))} bytes"
        )


def _expect_views(case, rank, places):
    if len(set(places)) > 1:
        cause = COPIED if len(set(places)) == len(places) else ""
        raise Wrong(
            case.name, f"the values are right, but rank {rank}'s gradients do not lie in one flat tensor", cause=cause
        )
