"""Check exercise 1 of lab 10: contiguous stages, the most expensive of which is as cheap as possible."""

import random

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks.span_mistakes import MISTAKES, Optimum, same, stage_costs

TABLE = (
    ("equal blocks, a cheap output", [0, 2, 2, 2, 2, 1], 2),
    ("the output costs as much as 3 blocks", [0, *[2] * 8, 6], 3),
    ("the output costs more than any stage of blocks", [0, *[2] * 6, 9], 4),
    ("blocks of different costs", [0, 1, 5, 2, 2, 5, 3, 1, 4], 3),
    ("an expensive part early", [0, 9, 1, 1, 1, 3, 3, 3], 3),
    ("as many stages as parts", [0, 2, 2, 3], 4),
    ("one stage", [0, 2, 2, 3], 1),
    ("the stages cannot be equal", [0, 6, 9, 7, 9, 4, 5, 5, 11], 3),
    ("a large output after small blocks", [0, 8, 6, 8, 4, 6, 3, 3, 8, 10], 3),
    ("12 blocks on 5 ranks", [0, *[2] * 12, 5], 5),
)
ERRORS = ((r"(min|max)\(\) (arg|iterable argument) is", "no part is left for a later stage: each of them needs one"),)
ADVICE = "for 5 parts and 2 stages, write down all four cuts"


@exercise("10/1", "stages of equal cost", points=10, minutes=15, reference=exercises.stage_spans)
def stage_spans(student):
    def listed(costs, stages):
        answer = student(costs, stages)
        pairs = isinstance(answer, list | tuple) and all(isinstance(p, list | tuple) and len(p) == 2 for p in answer)
        if not pairs or not all(isinstance(n, int) for pair in answer for n in pair):
            cause = "return the list" if answer is None else ""
            raise Wrong("", f"returned {answer!r:.80} instead of a list of pairs (start, stop)", cause=cause)
        return [tuple(pair) for pair in answer]

    yield from judge(
        student, listed, list(_cases()), MISTAKES, told=_told, same=same, errors=ERRORS, otherwise=_fault, advice=ADVICE
    )


def _cases():
    for name, costs, stages in TABLE:
        yield _case(name, costs, stages)
    draw = random.Random(0)
    for number in range(12):
        costs = [0, *[draw.randint(1, 9) for _ in range(draw.randint(4, 9))], draw.randint(3, 20)]
        case = _case(f"drawn at random, {number + 1} of 12", costs, draw.randint(2, 5))
        yield case._replace(line="12 drawn at random: right" * (number == 11))


def _case(name, costs, stages):
    right = Optimum(costs, stages)
    return Case(name, (costs, stages), right, f"{name}: the most expensive of {stages} costs {right.least}")


def _fault(case, spans) -> str:
    return case.right.fault(spans)


def _told(case, spans):
    costs, stages = case.arguments
    cost = "" if case.right.fault(spans) else f", whose most expensive stage costs {max(stage_costs(costs, spans))}"
    return f"{spans}{cost}", f"a cut like {case.right.spans} with {case.right.least}\n  costs {costs}, {stages} stages"
