"""Compute how long at least one of many events lasts, and the lengths that common mistakes produce. All in µs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf

import numpy as np

from labs_helpers.measure.trace import Event

Interval = tuple[float, float]


def intervals(events: Iterable[Event]) -> list[Interval]:
    return [(event["ts"], event["ts"] + event["dur"]) for event in events]


def covered(events: Iterable[Event]) -> float:
    """Return the length of the union of intervals: each start opens one more, each end closes one."""
    ends = np.array(intervals(events)).reshape(-1, 2).T
    at, change = ends.ravel(), np.repeat([1, -1], ends.shape[1])
    order = np.argsort(at, kind="stable")
    is_open = np.cumsum(change[order])[:-1] > 0
    return float(np.diff(at[order])[is_open].sum())


def first_to_last(events: Iterable[Event]) -> float:
    """Return the time from the first start to the last end, including pauses; 0 without events."""
    starts, ends = zip(*intervals(events), strict=True) if (events := list(events)) else ((0.0,), (0.0,))
    return max(ends) - min(starts)


def added_up(events: Iterable[Event]) -> float:
    return sum((event["dur"] for event in events), 0.0)


def looped(given: Iterable[Interval], reach: Callable[[float, float], float] = max, least: float = 0.0) -> float:
    """Compute it with a loop over intervals; the defaults are right. reach: of the furthest end so far and this end;
    least: of one step."""
    total, reached = 0.0, -inf
    for start, end in given:
        total += max(least, end - max(start, reached))
        reached = reach(reached, end)
    return float(total)


def without_the_last(events: Iterable[Event]) -> float:
    """Return all merged intervals except the last."""
    given = sorted(intervals(events))
    begins = [start for i, (start, _) in enumerate(given) if i and start > max(end for _, end in given[:i])]
    return covered(e for e in events if e["ts"] < begins[-1]) if begins else 0.0
