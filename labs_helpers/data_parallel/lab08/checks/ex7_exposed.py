"""Check exercise 7 of lab 08: the time of communication, and the part of it without computation."""

import random
from numbers import Real

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.data_parallel.lab08 import exercises
from labs_helpers.data_parallel.lab08.checks.interval_mistakes import ERRORS, MISTAKES, Lists

TABLE = (
    ("one message, half of it hidden", [(0, 4)], [(2, 6)]),
    ("two messages, one of them hidden", [(0, 5)], [(1, 3), (6, 9)]),
    ("nothing computes", [], [(1, 3), (4, 8)]),
    ("nothing communicates", [(0, 5)], []),
    ("a compute interval inside a message", [(3, 5)], [(1, 9)]),
    ("a message from one compute interval into the next", [(0, 4), (6, 9)], [(3, 8)]),
    ("compute intervals out of order", [(6, 9), (0, 4)], [(10, 12), (3, 8)]),
    ("two messages at the same time", [(0, 3)], [(2, 7), (4, 9)]),
    ("a message inside another one", [(0, 3)], [(2, 12), (4, 6), (8, 9)]),
    ("compute intervals that overlap", [(0, 6), (3, 8), (1, 2)], [(2, 10)]),
    ("intervals that touch", [(0, 2), (2, 4)], [(1, 3), (3, 6)]),
)


@exercise("08/7", "exposed communication", points=15, minutes=20, reference=exercises.exposed)
def exposed(student):
    def checked(compute, communication):
        answer = student(compute, communication)
        answer = expect_tuple("", tuple(answer) if isinstance(answer, list) else answer, "communicating", "exposed")
        if not all(isinstance(one, Real) for one in answer):
            raise Wrong("", f"returned {answer!r:.80} instead of two numbers")
        return answer

    advice = "draw both lists on one time axis"
    yield from judge(student, checked, list(_cases()), MISTAKES, told=_told, same=_same, errors=ERRORS, advice=advice)


def _cases():
    for name, compute, communication in TABLE:
        yield _case(name, compute, communication)
    generator = random.Random(0)
    for number in range(20):
        lists = [
            [(start, start + generator.randint(1, 9)) for start in generator.sample(range(40), generator.randint(0, 7))]
            for _ in range(2)
        ]
        case = _case(
            f"drawn at random, {number + 1} of 20", *lists, scale=1.7320508e-4
        )  # not a whole number of microseconds
        yield case._replace(line="20 drawn at random: right" * (number == 19))


def _case(name, compute, communication, scale=1e-3):
    arguments = tuple([(a * scale, b * scale) for a, b in some] for some in (compute, communication))
    right = tuple(ticks * scale for ticks in Lists(compute, communication).right)
    line = f"{name}: {1e3 * right[0]:.3g} ms of communication, {1e3 * right[1]:.3g} ms of it exposed"
    return Case(name, arguments, right, line)


def _same(found, right) -> bool:
    return all(abs(a - b) <= 1e-9 for a, b in zip(found, right, strict=True))


def _told(case, answer):
    both = (f"{1e3 * a:.4g} ms, of which {1e3 * b:.4g} ms are exposed" for a, b in (answer, case.right))
    compute, communication = (
        ", ".join(f"{1e3 * a:.3g}–{1e3 * b:.3g}" for a, b in some) or "none" for some in case.arguments
    )
    found, expected = both
    return found, f"{expected}\n  compute {compute} ms; communication {communication} ms"
