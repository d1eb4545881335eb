"""Check exercise 1 of lab 10: contiguous stages, the most expensive of which is as cheap as possible."""

import random
from dataclasses import dataclass

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.pipeline.lab10 import exercises
from labs_helpers.pipeline.lab10.checks.span_mistakes import MISTAKES, Costs, Spans, best, stage_costs

TABLE = (
    ("equal blocks, a cheap output", [0, 2, 2, 2, 2, 1], 2),
    ("the output costs as much as 3 blocks", [0, *[2] * 8, 6], 3),
    ("the output costs more than any stage of blocks", [0, *[2] * 6, 9], 4),
    ("blocks of different costs", [0, 1, 5, 2, 2, 5, 3, 1, 4], 3),
    ("an expensive part early", [0, 9, 1, 1, 1, 3, 3, 3], 3),
    ("as many stages as parts", [0, 2, 2, 3], 4),
    ("one stage", [0, 2, 2, 3], 1),
    ("12 blocks on 5 ranks", [0, *[2] * 12, 5], 5),
)
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
        student, listed, list(_cases()), MISTAKES, told=_told, same=_same, otherwise=_fault, advice=ADVICE
    )


@dataclass(frozen=True)
class Optimum:
    """The right answers: all cuts into this many stages whose most expensive one costs no more than `least`."""

    costs: Costs
    stages: int
    spans: Spans

    @property
    def least(self) -> float:
        return max(stage_costs(self.costs, self.spans))

    def accepts(self, spans: Spans) -> bool:
        return not fault(self, spans) and max(stage_costs(self.costs, spans)) <= self.least


def fault(right: Optimum, spans: Spans) -> str:
    """Return why the spans are no cut into stages, or ''."""
    count = len(right.costs)
    if len(spans) != right.stages:
        return f"there are {len(spans)} spans for {right.stages} stages"
    after = 0
    for number, (start, stop) in enumerate(spans):
        if start >= stop:
            return f"stage {number} holds no part"
        if start != after:
            return f"stage {number} starts at part {start}, but should start at part {after}"
        after = stop
    return "" if after == count else f"the last stage stops at {after}, but there are {count} parts"


def _cases():
    for name, costs, stages in TABLE:
        yield _case(name, costs, stages)
    draw = random.Random(0)
    for number in range(12):
        costs = [0, *[draw.randint(1, 9) for _ in range(draw.randint(4, 9))], draw.randint(3, 20)]
        case = _case(f"drawn at random, {number + 1} of 12", costs, draw.randint(2, 5))
        yield case._replace(line="12 drawn at random: right" * (number == 11))


def _case(name, costs, stages):
    right = Optimum(costs, stages, best(costs, stages))
    return Case(name, (costs, stages), right, f"{name}: the most expensive of {stages} costs {right.least}")


def _same(found, right) -> bool:
    return right.accepts(found) if isinstance(right, Optimum) else found == right


def _fault(case, spans) -> str:
    return fault(case.right, spans)


def _told(case, spans):
    costs, stages = case.arguments
    cost = "" if fault(case.right, spans) else f", whose most expensive stage costs {max(stage_costs(costs, spans))}"
    return f"{spans}{cost}", f"a cut like {case.right.spans} with {case.right.least}\n  costs {costs}, {stages} stages"
