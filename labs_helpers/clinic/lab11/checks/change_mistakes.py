"""Smallest changes with one mistake each, as answers to exercise 9 of lab 11 find them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import combinations
from math import comb, inf

Measure = Callable[[Iterable[str]], float]
Chosen = Iterable[str] | None
Mistake = Callable[[Measure, Sequence[str], float], Chosen]


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


def greedy_ends(measure: Measure, changes: Sequence[str], goal: float) -> set[frozenset[str] | None]:
    """Return each set that results from adding the best change until the goal is reached; equal ones in any order.

    None is among them where no change gains anything.
    """
    ends: set[frozenset[str] | None] = set()
    level = {frozenset[str]()}
    while level:
        ends |= (reached := {chosen for chosen in level if measure(chosen) <= goal})
        later: set[frozenset[str]] = set()
        for chosen in level - reached:
            ms = {chosen | {change}: measure(chosen | {change}) for change in changes if change not in chosen}
            best = min(ms.values(), default=inf)
            later |= {longer for longer, time in ms.items() if time == best}
            if best >= measure(chosen):
                ends.add(None)
        level = later
    return ends


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


def _summed_first(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    """Return the first set whose added gains reach the goal."""
    gains = _gains(measure, changes)
    return smallest(lambda chosen: measure(()) - sum(map(gains.get, chosen)), changes, goal, choose=_first)


def _without_useless(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    """Try only sets of changes that gain something alone."""
    return smallest(measure, list(_helpful(measure, changes, goal)), goal)


def _by_slowest(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    """Return the slowest set of the first size of which even the slowest reaches the goal."""
    slowest = (max(level, key=measure) for level in by_size(changes))
    return next((chosen for chosen in slowest if measure(chosen) <= goal), None)


def _helpful(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    return [change for change, gain in _gains(measure, changes).items() if gain > 0]


def _everything(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    return changes if measure(changes) <= goal else None


def _fastest(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
    best = min((chosen for level in by_size(changes) for chosen in level), key=measure)
    return best if measure(best) <= goal else None


def _setting(**settings) -> Mistake:
    return lambda measure, changes, goal: smallest(measure, changes, goal, **settings)


def _or_all(mistake: Mistake) -> Mistake:
    """Return the mistake in an answer that measures all changes first, and returns them if it finds no other set."""

    def answer(measure: Measure, changes: Sequence[str], goal: float) -> Chosen:
        if measure(changes) > goal:
            return None
        found = mistake(measure, changes, goal)
        return changes if found is None else found

    return answer


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
EXACTLY = "a step of exactly `goal` ms reaches the goal: use <="
ADDED = "the gains of single changes are added up; measure the changes together"
ALL = "the fastest of all sets is returned; a smaller set may reach the goal"
SEARCHES = [  # which may find no set, though one reaches the goal
    (SINGLE, _setting(sizes=lambda count: range(min(2, count + 1)))),
    (SINGLE, _setting(sizes=lambda count: range(1, min(2, count + 1)))),
    ("single changes and pairs are tried; the smallest set may be larger",
     _setting(sizes=lambda count: range(min(3, count + 1)))),
    ("sets of all changes but one are never tried",
     _setting(sizes=lambda count: range(count - 1))),
    (EXACTLY, _setting(reaches=lambda ms, goal: ms < goal)),
    (EMPTY, _setting(sizes=lambda count: range(1, count + 1))),
    (ADDED, _summed),
    (ADDED, _summed_first),
    ("changes that gain nothing alone are left out; together with others they may gain", _without_useless),
]  # fmt: skip
MISTAKES = [
    *SEARCHES,
    *((sentence, _or_all(search)) for sentence, search in SEARCHES),
    ("changes are ranked by what each gains alone; that depends on the other changes", _ranked),
    (SINGLE, _setting(sizes=lambda count: range(min(2, count + 1)), otherwise=list)),
    ("all changes that gain something alone are returned", _helpful),
    (ALL, _everything),
    ("the first set that reaches the goal is returned; of those of the same size, the fastest counts",
     _setting(choose=_first)),
    ("the last set that reaches the goal is returned; of those of the same size, the fastest counts",
     _setting(choose=_last)),
    ("of the sets of the smallest size, the slowest that reaches the goal is returned", _setting(choose=max)),
    (EXACTLY, lambda measure, changes, goal: smallest(measure, changes, goal) if measure(changes) < goal else None),
    (ALL, _fastest),
    (DROPPED, _dropped),
    (DROPPED, partial(_dropped, order=-1)),
    ("only the first changes of the list are tried together; try every set of a size", _prefix),
    (EMPTY, lambda measure, changes, goal: smallest(measure, changes, goal) or None),
    (EMPTY, lambda measure, changes, goal: smallest(measure, changes, goal) or (None if changes else
     _everything(measure, changes, goal))),
    ("if even all changes miss the goal, the answer is None", _setting(otherwise=list)),
    ("if even all changes miss the goal, the answer is None, not the empty set", _setting(otherwise=lambda _: ())),
    ("every answer is None: perhaps a return is missing", lambda measure, changes, goal: None),
    ("a size counts only if even its slowest set reaches the goal; its fastest set decides", _by_slowest),
    ("all changes together are never tried; they may be the smallest set", _setting(sizes=range)),
]  # fmt: skip
