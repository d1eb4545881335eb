"""Cut a model into stages with one mistake each, as answers to exercise 1 of lab 10 do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations, pairwise
from operator import itemgetter

Spans = list[tuple[int, int]]
Costs = Sequence[float]
Worst = Callable[[Sequence[float]], float]  # of the costs of the stages


def spans_of(cuts: Sequence[int], count: int) -> Spans:
    """Return the stages between the parts at which new stages start."""
    return list(pairwise((0, *cuts, count)))


def stage_costs(costs: Costs, spans: Spans) -> list[float]:
    return [sum(costs[start:stop]) for start, stop in spans]


def best(costs: Costs, stages: int, worst: Worst = max) -> Spans:
    """Return the cut with the smallest worst(costs of the stages), the first one of several."""
    count = len(costs)
    cuts = (spans_of(cut, count) for cut in combinations(range(1, count), stages - 1))
    return min(cuts, key=lambda spans: worst(stage_costs(costs, spans)))


@dataclass(frozen=True)
class Optimum:
    """All cuts with the smallest worst(costs of the stages), as one answer: several may be equally good."""

    costs: Costs
    stages: int
    worst: Worst = max

    @cached_property
    def spans(self) -> Spans:
        return best(self.costs, self.stages, self.worst)

    @property
    def least(self) -> float:
        return self.worst(stage_costs(self.costs, self.spans))

    def accepts(self, spans: Spans) -> bool:
        return not self.fault(spans) and self.worst(stage_costs(self.costs, spans)) <= self.least

    def fault(self, spans: Spans) -> str:
        """Return why the spans do not cut the parts into stages, or ''."""
        count, after = len(self.costs), 0
        if len(spans) != self.stages:
            return f"there are {len(spans)} spans for {self.stages} stages"
        for number, (start, stop) in enumerate(spans):
            if start >= stop:
                return f"stage {number} holds no part"
            if start != after:
                return f"stage {number} starts at part {start}, but should start at part {after}"
            after = stop
        return "" if after == count else f"the last stage stops at {after}, but there are {count} parts"


def same(found: Spans | Optimum, other: Spans | Optimum) -> bool:
    """Tell whether two answers agree; an `Optimum` agrees with each of its cuts."""
    if isinstance(other, Optimum):
        return other.accepts(found.spans if isinstance(found, Optimum) else found)
    return found.accepts(other) if isinstance(found, Optimum) else found == other


def _least_squares(costs: Sequence[float]) -> float:
    return sum(cost * cost for cost in costs)


def _least_difference(costs: Sequence[float]) -> float:
    return max(costs) - min(costs)


def _largest_minimum(costs: Sequence[float]) -> float:
    return -min(costs)


def _equal_parts(costs: Costs, stages: int, larger_first: bool) -> Spans:
    size, more = divmod(len(costs), stages)
    sizes = [size + (s < more if larger_first else s >= stages - more) for s in range(stages)]
    return spans_of(list(accumulate(sizes))[:-1], len(costs))


def _equal_blocks(costs: Costs, stages: int) -> Spans:
    """Return stages with the same number of blocks; the embedding and the output join the first and the last."""
    inner = _equal_parts(costs[1:-1], stages, True)
    return spans_of([start + 1 for start, _ in inner[1:]], len(costs))


def _filled(costs: Costs, stages: int, beyond: bool) -> Spans:
    """Fill each stage up to the average. beyond: the part that reaches it belongs to the stage."""
    average, cuts, total = sum(costs) / stages, list[int](), 0.0
    for i, cost in enumerate(costs):
        if not beyond and i and total + cost > average and len(cuts) < stages - 1:
            cuts.append(i)
            total = 0.0
        total += cost
        if beyond and total >= average and len(cuts) < stages - 1:
            cuts.append(i + 1)
            total = 0.0
    return spans_of(cuts, len(costs))


def _at_multiples(costs: Costs, stages: int) -> Spans:
    """Cut where the sum of the costs comes closest to each multiple of the average."""
    sums, average = list(accumulate(costs)), sum(costs) / stages
    cuts = [min(range(len(sums)), key=lambda i: abs(sums[i] - k * average)) + 1 for k in range(1, stages)]
    return spans_of(cuts, len(costs))


def _halved(costs: Costs, stages: int) -> Spans:
    """Cut into two halves, and each of them again."""

    def halve(start: int, stop: int, left: int) -> Spans:
        if left == 1:
            return [(start, stop)]
        first, second = best(costs[start:stop], 2)
        return [*halve(start, start + first[1], left // 2), *halve(start + second[0], stop, left - left // 2)]

    return halve(0, len(costs), stages)


def _ordered(costs: Costs, stages: int) -> Spans:
    return best(sorted(costs), stages)


EQUAL = "every stage has the same number of parts, whatever they cost"
FILLED = (
    "each stage is filled in turn until it holds the average: too much or too little is left for the last one; "
    "compare all cuts instead"
)
INCLUSIVE = "a span ends with the stage's last part; stop is the part after it"
FROM_1 = "the parts are counted from 1; the first one is 0"
MISTAKES = [
    (EQUAL, lambda costs, stages: _equal_parts(costs, stages, True)),
    (EQUAL, lambda costs, stages: _equal_parts(costs, stages, False)),
    ("every stage has the same number of blocks; the output costs as much as several of them", _equal_blocks),
    (FILLED, lambda costs, stages: _filled(costs, stages, True)),
    (FILLED, lambda costs, stages: _filled(costs, stages, False)),
    (
        "the stages end at the multiples of the average; a different cut can have a cheaper most expensive stage",
        _at_multiples,
    ),
    (
        "the model is cut into two halves, and each of them again; compare all cuts instead",
        _halved,
    ),
    (
        "the cost of the last part, the output, is not counted",
        lambda costs, stages: best([*costs[:-1], 0], stages),
    ),
    (INCLUSIVE, lambda costs, stages: [(start, stop - 1) for start, stop in best(costs, stages)]),
    (FROM_1, lambda costs, stages: [(start + 1, stop + 1) for start, stop in best(costs, stages)]),
    (
        "the cut makes the cheapest stage as expensive as possible; the most expensive one decides",
        lambda costs, stages: Optimum(costs, stages, _largest_minimum),
    ),
    (
        "the cut minimizes the difference between stages; only the most expensive one decides",
        lambda costs, stages: Optimum(costs, stages, _least_difference),
    ),
    (
        "the cut minimizes the sum of squares; only the most expensive stage decides",
        lambda costs, stages: Optimum(costs, stages, _least_squares),
    ),
    ("the parts are sorted by cost; they have to keep their order", _ordered),
    (
        "the cut minimizes the cost of the last stage alone",
        lambda costs, stages: Optimum(costs, stages, itemgetter(-1)),
    ),
]
