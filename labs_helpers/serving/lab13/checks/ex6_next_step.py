"""Check exercise 6 of lab 13: one step of in-flight and of static batching."""

from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_tuple
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.serving.lab13 import exercises
from labs_helpers.serving.lab13.checks.step_mistakes import MISTAKES, stepped

QUEUE = [("d", 30, 4), ("e", 20, 2), ("f", 10, 7), ("g", 10, 1)]
CASES = (  # title, running, waiting, slots, capacity, static
    ("nobody runs yet", [], QUEUE, 3, 100, False),
    ("one request has ended", [("a", 20, 3), ("b", 30, 0), ("c", 10, 1)], QUEUE, 3, 100, False),
    ("the oldest does not fit, younger ones would", [("a", 40, 3), ("b", 35, 2)], QUEUE, 4, 100, False),
    ("the capacity is reserved to the last position", [("a", 40, 3), ("b", 30, 0), ("c", 30, 5)], QUEUE, 4, 100, False),
    ("all slots are taken", [("a", 10, 3), ("b", 10, 2), ("c", 10, 2)], QUEUE, 3, 100, False),
    ("two places become free", [("a", 10, 0), ("b", 10, 2), ("c", 10, 0)], QUEUE, 3, 100, False),
    ("nobody waits", [("a", 10, 2), ("b", 10, 0)], [], 3, 100, False),
    ("a request that never fits holds up the others", [("a", 5, 0)], QUEUE, 3, 25, False),
    ("static, the batch still runs", [("a", 20, 3), ("b", 30, 0), ("c", 10, 1)], QUEUE, 3, 100, True),
    ("static, the last request has ended", [("a", 20, 0)], QUEUE, 2, 100, True),
    ("static, several have ended together", [("a", 60, 0), ("b", 30, 0)], QUEUE, 3, 60, True),
)  # fmt: skip
ADVICE = "go through the three steps with this case's lists, and write down how many positions are reserved after each"


@exercise("13/6", "one step of in-flight batching", points=10, minutes=20, reference=exercises.next_step)
def next_step(student):
    def lists(*arguments):
        answer = expect_tuple("", student(*arguments), "running", "waiting")
        return tuple(_requests(*pair) for pair in zip(("running", "waiting"), answer, strict=True))

    yield from judge(student, lists, [_case(*case) for case in CASES], MISTAKES, told=_told, advice=ADVICE)


def _requests(name, found):
    if not isinstance(found, list | tuple):
        raise Wrong("", f"{name} is {found!r:.60}; it is a list of requests")
    for one in found:
        if not (isinstance(one, list | tuple) and len(one) == 3 and isinstance(one[2], Integral)):
            raise Wrong("", f"{name} contains {one!r:.60}; a request is (name, positions, left)")
    return [tuple(one) for one in found]


def _case(title, *arguments):
    right = stepped(*arguments)
    names = ", ".join(name for name, *_ in right[0])
    return Case(title, arguments, right, f"{title}: tokens for {names or 'nobody'}")


def _told(case, found):
    part = next(i for i in range(2) if found[i] != case.right[i])
    return f"{found[part]}", f"{case.right[part]}", ("running", "waiting")[part]
