"""Check exercise 2 of lab 01: launches, busy and exposed, on handmade traces and on real ones."""

from functools import partial
from operator import itemgetter

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Part
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks import gpu_time_mistakes as mistakes
from labs_helpers.transformer.lab01.checks.ask import judge_traces, near, told
from labs_helpers.transformer.lab01.checks.traces import GPU_TIME

NONE_LEFT = (
    r"index out of range|out of bounds|empty|zero-size|got 0\)|need at least one",
    "a trace may contain only communication, or no work at all: an empty list has no first and no smallest interval",
)
LISTS = {"launches": mistakes.launches, "busy": mistakes.busy, "exposed": mistakes.exposed}
PARTS = [
    Part(itemgetter(at), LISTS[name], told(name, itemgetter(at)), near, partial(mistakes.apart, at))
    for at, name in enumerate(LISTS)
]
ADVICE = "mark what you count on the lines above: your share times the last line's µs is the time that you found."


@exercise("01/2", "busy or waiting", points=15, minutes=20, reference=exercises.gpu_time)
def gpu_time(student):
    def read(answer):
        answer = expect_tuple("", answer, *LISTS)
        for name, found in zip(LISTS, answer, strict=True):
            expect_is_number("", name, found)
        return answer

    line = "{0[0]:,} launches, busy {0[1]:.0%}, exposed {0[2]:.0%}".format
    yield from judge_traces(
        student, read, GPU_TIME, mistakes.right, PARTS, line, errors=[NONE_LEFT], advice=ADVICE, numbers=False
    )
