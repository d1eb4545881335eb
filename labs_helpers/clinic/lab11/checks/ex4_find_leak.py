"""Check exercise 4 of lab 11: the lines that leak memory, from the record of the allocator."""

from math import inf, isclose
from numbers import Real

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks import leak_mistakes
from labs_helpers.clinic.lab11.checks.leak_mistakes import ERRORS, MISTAKES, TWO_STEPS
from labs_helpers.clinic.lab11.timelines import Line, live_at_ends, timeline
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge

KIB = 1024
ADVICE = "write down, for one place, its live bytes at the end of each step, and their differences"


def _all(step):
    return inf


def _none(step):
    return 0


HEALTHY = {
    "model, line 4 of train.py": Line(lambda step: [400 * KIB] * (step == 0), _all),
    "forward, line 31 of model.py": Line(lambda step: [96 * KIB, 64 * KIB], _none),
    "update, line 12 of train.py": Line(lambda step: [800 * KIB] * (step == 0), _all),
    "load, line 7 of data.py": Line(lambda step: [2 * KIB], lambda step: 1),
}
LOSSES = Line(lambda step: [70 * KIB, 4], _all)
LENGTHS = (3, 5, 1, 2, 6, 4, 9, 5)


def _cache(step):
    return [30 * KIB] * (step < 3)


def _pauses(step):
    return [50 * KIB] * (step != 6)


CASES = (  # title, steps, lines besides those of a healthy run
    ("a healthy run", 8, {}),
    ("losses with their graphs", 8, {"log, line 20 of train.py": LOSSES}),
    ("outputs of different lengths", 8, {"keep, line 3 of eval.py": Line(lambda step: [LENGTHS[step] * 1000], _all)}),
    ("two steps", 2, {"log, line 20 of train.py": LOSSES}),
    ("a cache that fills in three steps", 8, {"masks, line 9 of model.py": Line(_cache, _all)}),
    (
        "a buffer that grows and shrinks",
        8,
        {"pad, line 5 of data.py": Line(lambda step: [KIB] * 3, lambda step: (1, 2, 3, 1, 2, 4, 3, 6)[step])},
    ),
    ("a leak that pauses in one step", 8, {"keep, line 3 of eval.py": Line(_pauses, _all)}),
    ("a leak that pauses in the last step", 6, {"keep, line 3 of eval.py": Line(lambda step: [9] * (step < 5), _all)}),
    (
        "a buffer that grows and shrinks, and is smaller in the end",
        8,
        {"pad, line 5 of data.py": Line(lambda step: [KIB] * 3, lambda step: (1, 2, 3, 5, 4, 2, 4, 3)[step])},
    ),
    ("a leak that pauses early", 8, {"keep, line 3 of eval.py": Line(lambda step: [50 * KIB] * (step != 1), _all)}),
    (
        "a leak that pauses in the last step of the first half",
        8,
        {"keep, line 3 of eval.py": Line(lambda step: [50 * KIB] * (step != 3), _all)},
    ),
    ("a leak that starts late", 8, {"log, line 20 of train.py": Line(lambda step: [7 * KIB] * (step > 3), _all)}),
    ("a leak that starts too late", 8, {"log, line 20 of train.py": Line(lambda step: [7 * KIB] * (step > 4), _all)}),
    (
        "longer and longer sequences",
        8,
        {"pad, line 5 of data.py": Line(lambda step: [(step + 1) * KIB, KIB], _none)},
    ),
    (
        "a list that is copied to grow",
        6,
        {"append, line 2 of log.py": Line(lambda step: [(step + 1) * KIB + step % 2], lambda step: 1)},
    ),
    (
        "a queue that is emptied too slowly",
        6,
        {"send, line 8 of queue.py": Line(lambda step: [(step + 5) * KIB] * 3, lambda step: 2 * step + 3)},
    ),
    (
        "two leaks and a cache",
        4,
        {
            "log, line 20 of train.py": LOSSES,
            "masks, line 9 of model.py": Line(lambda step: [KIB] * (step < 2), _all),
            "log, line 21 of train.py": Line(lambda step: [step * step + 8], _all),
        },
    ),
)


@exercise("11/4", "the leak in a timeline", points=15, minutes=20, reference=exercises.find_leak)
def find_leak(student):
    def checked(events, steps):
        answer = student(events, steps)
        if not isinstance(answer, dict):
            cause = "a return is missing" if answer is None else ""
            found = f"returned {answer!r:.60} instead of a dict from each leaking place to its bytes per step"
            raise Wrong("", found, cause=cause)
        for place, growth in answer.items():
            if not isinstance(growth, Real):
                raise Wrong("", f"the growth of {place!r:.60} is {growth!r:.60} instead of a number")
        return answer

    cases = [_case(*case) for case in CASES]
    yield from judge(student, checked, cases, MISTAKES, told=_told, same=_same, errors=ERRORS, advice=ADVICE)


def _case(title, steps, lines):
    events = timeline(steps, HEALTHY | lines)
    right = leak_mistakes.find_leak(events, steps)
    leaks = " and ".join(f"{growth:,.0f} bytes per step from {place}" for place, growth in right.items())
    line = f"{title}, {len(events)} events: {leaks or 'no leak'}"
    return Case(title, (events, steps), right, line, TWO_STEPS if steps == 2 else ())


def _same(found, right):
    return found.keys() == right.keys() and all(isclose(found[place], right[place]) for place in right)


def _told(case, answer):
    events, steps = case.arguments
    ends = live_at_ends(events, steps)
    wrong = next(place for place in [*case.right, *answer] if answer.get(place) != case.right.get(place))
    found, expected = (f"{of[wrong]:,.6g} bytes per step" if wrong in of else "no leak" for of in (answer, case.right))
    if wrong in ends:
        shown = ", ".join(f"{nbytes:,}" for nbytes in ends[wrong])
        expected += f"\n  its live bytes at the ends of steps 0 to {steps - 1}: {shown}"
    return found, expected, str(wrong)
