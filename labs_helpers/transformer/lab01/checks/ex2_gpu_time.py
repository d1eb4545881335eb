"""Exercise 2 of lab 01: launches, busy and exposed, on traces made by hand and on real ones."""

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_number, expect_tuple
from labs_helpers.measure.trace import GPU_WORK
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.ask import ask, expect_near, showing
from labs_helpers.transformer.lab01.checks.communication_causes import exposed_causes, exposed_us
from labs_helpers.transformer.lab01.checks.covered import covered
from labs_helpers.transformer.lab01.checks.gpu_time_causes import busy_causes, communicates, launch_causes, whole_of
from labs_helpers.transformer.lab01.checks.gpu_time_traces import CASES
from labs_helpers.transformer.lab01.checks.practice_traces import of
from labs_helpers.transformer.lab01.checks.real_traces import real_traces

NONE_LEFT = (
    "of a trace's work all may communicate, or there may be none: an empty list has no first interval, and no least"
)


@exercise("01/2", "busy or waiting", points=15, minutes=20, reference=exercises.gpu_time)
def gpu_time(student):
    for case, events in CASES.items():
        with showing(events, numbers=False, last=f"the trace's time is {whole_of(events):g} µs"):
            yield _compared(case, student, events, launch_causes, busy_causes, exposed_causes)
    for case, events in real_traces():
        yield _compared(case, student, events)


def _compared(case: str, student, events, *causes) -> str:
    found = expect_tuple(case, ask(case, student, events, _of_errors(events)), "launches", "busy", "exposed")
    launches, whole = len(of(events, "kernel")), whole_of(events)
    busy, exposed = covered(of(events, *GPU_WORK)) / whole, exposed_us(events) / whole
    candidates = [of_one(events) for of_one in causes] or [()] * 3
    expect_number(case, "launches", found[0], launches, candidates[0])
    expect_near(case, "busy", found[1], busy, candidates[1])
    expect_near(case, "exposed", found[2], exposed, candidates[2])
    return f"{case}: {launches:,} launches, busy {busy:.0%}, exposed {exposed:.0%}"


def _of_errors(events) -> dict:
    """The causes of errors, by their type, that only a trace without other work than communication has."""
    others = [event for event in of(events, *GPU_WORK) if not communicates(event)]
    return {} if others else dict.fromkeys((IndexError, ValueError), NONE_LEFT)
