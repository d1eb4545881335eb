"""Smallest changes with one mistake each, as answers to exercise 9 of lab 11 find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import comb

Measure = Callable[[Iterable[str]], float]
Chosen = Iterable[str] | None


def by_size(changes: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Yield all sets of 0, 1, 2 … changes."""
    for size in range(len(changes) + 1):
        yield list(combinations(changes, size))


def smallest(
    measure: Measure,
    changes: Sequence[str],
    goal: float,
    *,
    sizes: Callable[[int], Iterable[int]] = lambda count: range(count + 1),
    reaches: Callable[[float, float], bool] = lambda ms, goal: ms <= goal,
    choose: Callable = min,
    otherwise: Callable[[Sequence[str]], Chosen] = lambda changes: None,
) -> Chosen:
    """Return the right set; other settings than the defaults make mistakes.

    sizes: of the sets that are tried. choose: among those of one size that reach the goal, by ms. otherwise: what is
    returned if no set does.
    """
    levels = list(by_size(changes))
    for size in sizes(len(changes)):
        ms = {chosen: time for chosen in levels[size] if reaches(time := measure(chosen), goal)}
        if ms:
            return choose(ms, key=ms.get)
    return otherwise(changes)


def limit(size: int | None, count: int) -> int:
    """Return how many measurements an answer of this size may take; count: of all changes."""
    return 1 if size is None else sum(comb(count, k) for k in range(size + 1)) + (size < count)


def _gains(measure: Measure, changes: Sequence[str]) -> dict[str, float]:
    return {change: measure(()) - measure((change,)) for change in changes}


def _greedy(
    measure: Measure, changes: Sequence[str], goal: float, while_it_helps: bool = False, order: int = 1
) -> Chosen:
    chosen: list[str] = []
    while measure(chosen) > goal:
        left = [change for change in list(changes)[::order] if change not in chosen]
        best = min(left, key=lambda change: measure([*chosen, change]), default=None)
        if best is None or (while_it_helps and measure([*chosen, best]) == measure(chosen)):
            return None
        chosen.append(best)
    return chosen


def _ranked(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    """Add the changes in the order of their gains alone until the goal is reached."""
    gains = _gains(measure, changes)
    order = sorted(changes, key=gains.get, reverse=True)
    return next((order[:size] for size in range(len(order) + 1) if measure(order[:size]) <= goal), None)


def _prefix(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    return next((changes[:size] for size in range(len(changes) + 1) if measure(changes[:size]) <= goal), None)


def _dropped(measure: Measure, changes: Sequence[str], goal: float, order: int = 1) -> Chosen:
    """Begin with all changes and drop each one that the goal does not need."""
    chosen = set(changes)
    if measure(chosen) > goal:
        return None
    for change in list(changes)[::order]:
        if measure(chosen - {change}) <= goal:
            chosen.remove(change)
    return chosen


def _summed(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    """Add up the gains of single changes instead of measuring sets."""
    gains = _gains(measure, changes)
    return smallest(lambda chosen: measure(()) - sum(map(gains.get, chosen)), changes, goal)


def _helpful(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    return [change for change, gain in _gains(measure, changes).items() if gain > 0]


def _everything(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    return changes if measure(changes) <= goal else None


def _fastest(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    best = min((chosen for level in by_size(changes) for chosen in level), key=measure)
    return best if measure(best) <= goal else None


def _setting(**settings) -> Callable[[Measure, Sequence[str], float], Chosen]:
    return lambda measure, changes, goal: smallest(measure, changes, goal, **settings)


def _first(ms, key):
    return next(iter(ms))


def _last(ms, key):
    return list(ms)[-1]


GREEDY = "changes are added one at a time, each time the best; together, changes may gain what no single one shows"
SINGLE = (
    "only single changes are tried; each may gain nothing alone, because another part of the job still takes as long"
)
DROPPED = "unnecessary changes are dropped one at a time; the rest depends on their order, and is not the smallest set"
EMPTY = "the job as it is may reach the goal already: the answer is then the empty set"
ALL = "the fastest of all sets is returned; a smaller set may reach the goal"
MISTAKES = [
    (GREEDY, _greedy),
    (GREEDY, partial(_greedy, while_it_helps=True)),
    (GREEDY, partial(_greedy, order=-1)),
    ("changes are ranked by what each gains alone; that depends on the other changes", _ranked),
    (SINGLE, _setting(sizes=lambda count: range(min(2, count + 1)))),
    (SINGLE, _setting(sizes=lambda count: range(min(2, count + 1)), otherwise=list)),
    (SINGLE, _setting(sizes=lambda count: range(1, min(2, count + 1)))),
    (SINGLE, _setting(sizes=lambda count: sorted({0, min(1, count), count}))),
    (SINGLE, _setting(sizes=lambda count: sorted({min(1, count), count}))),
    ("single changes and pairs are tried; the smallest set may be larger",
     _setting(sizes=lambda count: range(min(3, count + 1)))),
    ("all changes that gain something alone are returned", _helpful),
    (ALL, _everything),
    ("the first set that reaches the goal is returned; of those of the same size, the fastest counts",
     _setting(choose=_first)),
    ("the last set that reaches the goal is returned; of those of the same size, the fastest counts",
     _setting(choose=_last)),
    ("of the sets of the smallest size, the slowest that reaches the goal is returned", _setting(choose=max)),
    ("a step of exactly `goal` ms reaches the goal: use <=", _setting(reaches=lambda ms, goal: ms < goal)),
    (ALL, _fastest),
    (DROPPED, _dropped),
    (DROPPED, partial(_dropped, order=-1)),
    ("only the first changes of the list are tried together; try every set of a size", _prefix),
    (EMPTY, _setting(sizes=lambda count: range(1, count + 1))),
    (EMPTY, lambda measure, changes, goal: smallest(measure, changes, goal) or None),
    ("if even all changes miss the goal, the answer is None", _setting(otherwise=list)),
    ("if even all changes miss the goal, the answer is None, not the empty set", _setting(otherwise=lambda _: ())),
    ("every answer is None: perhaps a return is missing", lambda measure, changes, goal: None),
    ("the gains of single changes are added up; measure the changes together", _summed),
    ("all changes together are never tried; they may be the smallest set", _setting(sizes=range)),
]  # fmt: skip
