"""Check exercise 3 of lab 11: the rank that the others wait for, by durations alone."""

import random
from math import isclose
from numbers import Integral

from labs_helpers.clinic.lab11 import exercises
from labs_helpers.clinic.lab11.checks.straggler_mistakes import limits, ranks, right, wastes
from labs_helpers.clinic.lab11.timed_jobs import all_reduce_times
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, expect_is_number, expect_tuple, likely_in_all
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts

CLOCKS = ((5000.0, -250.0, 0.5, 80.0, 6400.0, 1.0), (0.0, 3.5, -1.0, 2.0, -9.0, 1.5))  # far apart, and close
RUNS = (  # name, work[rank][step] in ms, ms of an all-reduce
    ("rank 2 of 4 is slower", [[90] * 4, [91, 89, 90, 90], [110] * 4, [90] * 4], 7),
    ("two ranks, two steps", [[100, 120], [80, 60]], 5),
    ("four ranks, all different", [[60] * 8, [80] * 8, [90] * 8, [100] * 8], 4),
    ("equal ranks", [[70, 75]] * 3, 5),
    ("2 ms in steps of 110 ms", [[100, 100], [98, 98]], 10),
    ("each rank is last once", [[120 if rank == step else 100 for step in range(4)] for rank in range(4)], 10),
    ("exactly 10% longer", [[80, 80], [90, 90]], 10),
    ("a little more than 10%", [[79, 79, 79], [90, 90, 90], [90, 90, 90]], 10),
    ("24 ms in steps of 414 ms", [[380] * 4, [404] * 4, [390] * 4], 10),
    ("5 ms in steps of 30 ms", [[20] * 4, [22] * 4, [25] * 4], 5),
    ("a rare long pause", [[104] * 8, [100] * 5 + [300, 100, 100], [100] * 8], 8),
    ("a pause in the first step", [[90] * 4, [88] * 4, [90] * 4, [290, 90, 90, 90]], 10),
    ("a pause in the last step", [[90] * 4, [88] * 4, [90, 90, 90, 290]], 10),
    ("three slow ranks and a fast one", [[100] * 4, [100] * 4, [80] * 4, [100] * 4], 10),
    ("only the first of three steps differs", [[80, 100, 100], [112, 101, 101]], 8),
    ("a long all-reduce", [[102] * 4, [90] * 4, [97] * 4], 220),
    ("25 ms in steps of 300 ms", [[75] * 4, [100] * 4, [90] * 4], 200),
    ("a long second step", [[90, 310, 90, 90], [110, 330, 110, 110]], 10),
    ("a short last step", [[110, 310, 310, 100], [128, 330, 326, 118]], 10),
    ("a single rank", [[100, 90, 95]], 10),
)  # fmt: skip
ALONE = "a single rank waits for nobody, so that the answer is None"
ERRORS = ((r"ZeroDivisionError|StatisticsError|empty (sequence|iterable)|iterable argument is empty", ALONE),)
ADVICE = "write down each rank's mean wait, finished − begun, and the time from one finish to the next"


@exercise("11/3", "find the straggler", points=10, minutes=15, reference=exercises.find_straggler)
def find_straggler(student):
    cases, ranks_found = list(_cases()), []

    def found(begun, finished):
        answer = student(begun, finished)
        if answer is None:
            ranks_found.append(None)
            return None
        rank, waste = expect_tuple("", answer, "rank", "waste")
        if not isinstance(rank, Integral) or rank not in range(len(begun)):
            cause = "the order is (rank, waste)" if isinstance(waste, Integral) else ""
            cause = "return None alone, without a waste" if rank is None else cause
            raise Wrong("", f"the rank is {rank!r:.60}, expected one of 0 to {len(begun) - 1}", cause=cause)
        expect_is_number("", "the waste", waste)
        ranks_found.append(rank)
        return rank, waste

    def wrong_limit(case, rank):
        """Return the sentence on a limit that explains all answers; a few of them agree with many limits."""
        return likely_in_all((limits(*one.arguments) for one in cases[: len(ranks_found)]), ranks_found)

    parts = [
        Part(lambda answer: answer and answer[0], ranks, _told_rank, otherwise=wrong_limit),
        Part(lambda answer: answer and answer[1], wastes, _told_waste, _close),
    ]
    yield from judge_parts(student, found, cases, parts, advice=ADVICE)


def _cases():
    for number, (name, work, transfer) in enumerate(RUNS):
        times = all_reduce_times(work, CLOCKS[number % 2], transfer)
        answer = right(*times)
        shown = f"the others wait {answer[1]:.3g} ms longer than rank {answer[0]}" if answer else "no straggler"
        yield Case(name, times, answer, f"{name}: {shown}", ERRORS if len(work) == 1 else ())
    draw = random.Random(0)
    for number in range(12):
        world, steps = draw.randint(2, 6), draw.randint(2, 7)
        slow = [draw.choice((100, 110, 125)) for _ in range(world)]
        work = [[ms + draw.randint(0, 40) / 4 for _ in range(steps)] for ms in slow]
        times = all_reduce_times(work, CLOCKS[number % 2], draw.choice((6, 30, 120)))
        line = "12 drawn at random: right" * (number == 11)
        yield Case(f"drawn at random, {number + 1} of 12", times, right(*times), line)


def _close(found, right) -> bool:
    return found is right if None in (found, right) else isclose(found, right, rel_tol=1e-6, abs_tol=1e-6)


def _shown(case):
    begun, finished = case.arguments
    waits = [sum(stop) / len(stop) - sum(start) / len(start) for start, stop in zip(begun, finished, strict=True)]
    per_step = (finished[0][-1] - finished[0][0]) / (len(finished[0]) - 1)
    share = (max(waits) - min(waits)) / per_step
    shown = ", ".join(f"{wait:.4g}" for wait in waits)
    return f"mean waits {shown} ms; they differ by {share:.1%} of the time per step, {per_step:.4g} ms"


def _told_rank(case, found):
    names = ["None" if rank is None else f"rank {rank}" for rank in (found, case.right and case.right[0])]
    return names[0], f"{names[1]}\n  {_shown(case)}", "the straggler"


def _told_waste(case, found):
    return f"{found:.6g} ms", f"{case.right[1]:.6g} ms\n  {_shown(case)}", "the waste"
