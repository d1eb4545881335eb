"""Check exercise 5 of lab 10: the bubble as a share of the step, and the most stashes on rank 0."""

from operator import itemgetter

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import expect_is_number, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks import bubble_mistakes
from labs_helpers.pipeline.lab10.checks.orders import counted
from labs_helpers.pipeline.schedules import SCHEDULES
from labs_helpers.pipeline.simulate import simulate
from labs_helpers.pipeline.validate import peak_stashes

SIZES = (
    ("GPipe", 4, 8), ("GPipe", 4, 2), ("GPipe", 3, 3), ("GPipe", 1, 5), ("1F1B", 4, 8), ("1F1B", 2, 9), ("1F1B", 5, 3),
    ("1F1B", 1, 4), ("interleaved", 4, 8, 2), ("interleaved", 4, 8, 4), ("interleaved", 3, 9, 2),
    ("interleaved", 4, 4, 3), ("interleaved", 2, 2, 2),
)  # fmt: skip
ADVICE = (
    "in the figure of GPipe in section 3, count rank 0's passes and its empty places; for stashes, count its F before "
    "the end of its first B"
)


@exercise("10/5", "bubbles and stashes", points=10, minutes=15, reference=exercises.bubble_and_stashes)
def bubble_and_stashes(student):
    def checked(*given):
        answer = student(*given)
        answer = expect_tuple("", tuple(answer) if isinstance(answer, list) else answer, "bubble", "stashes")
        for name, value in zip(("bubble", "stashes"), answer, strict=True):
            expect_is_number("", name, value)
        return answer

    parts = [
        Part(itemgetter(0), bubble_mistakes.bubbles, _told_bubble, _close),
        Part(itemgetter(1), bubble_mistakes.stashes, _told_stashes),
    ]
    yield from judge_parts(student, checked, [_case(*sizes) for sizes in SIZES], parts, advice=ADVICE)


def _case(name, ranks, micro_batches, chunks=1):
    more = (chunks,) if name == "interleaved" else ()
    schedule = SCHEDULES[name](ranks, micro_batches, *more)
    right = simulate(schedule).bubble_share, peak_stashes(schedule)[0]
    of_chunks = f", {chunks} chunks" * bool(more)
    title = f"{name}, {counted(ranks, 'rank')}, {micro_batches} micro-batches{of_chunks}"
    return Case(
        title,
        (name, ranks, micro_batches, *more),
        right,
        f"{title}: {right[0]:.1%}, {counted(right[1], 'stash', 'es')}",
    )


def _close(found, right) -> bool:
    return abs(found - right) <= 1e-6


def _told_bubble(case, found):
    return f"{found:.4g}", f"{case.right[0]:.4g}", "the bubble's share"


def _told_stashes(case, found):
    return f"{found:g}", f"{case.right[1]}, as the simulated timeline shows", "the stashes"
