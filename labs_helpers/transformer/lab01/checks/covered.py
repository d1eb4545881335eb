"""How long at least one of many events lasts, counted at their ends, and what people take for it. All in µs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import numpy as np

from labs_helpers.measure.trace import Event

Interval = tuple[float, float]


def intervals(events: Iterable[Event]) -> list[Interval]:
    return [(event["ts"], event["ts"] + event["dur"]) for event in events]


def covered(events: Iterable[Event]) -> float:
    """The length of the union of their intervals: at each start one more is open, at each end one less."""
    ends = np.array(intervals(events)).reshape(-1, 2).T
    at, change = ends.ravel(), np.repeat([1, -1], ends.shape[1])
    order = np.argsort(at, kind="stable")
    is_open = np.cumsum(change[order])[:-1] > 0
    return float(np.diff(at[order])[is_open].sum())


def first_to_last(events: Iterable[Event]) -> float:
    """From the first start to the last end, with all pauses; 0 where there is no event."""
    starts, ends = zip(*intervals(events), strict=True) if (events := list(events)) else ((0.0,), (0.0,))
    return max(ends) - min(starts)


def added_up(events: Iterable[Event]) -> float:
    return sum((event["dur"] for event in events), 0.0)


def to_the_last_end(events: Iterable[Event]) -> float:
    """By a loop over the sorted intervals that takes the end of the one before for the furthest reached."""
    return _looped(sorted(intervals(events)), lambda reached, end: end)


def over_gaps(events: Iterable[Event]) -> float:
    """From the first start to the last end, less the gaps between each sorted interval and the next."""
    given = sorted(intervals(events))
    return first_to_last(events) - sum(max(0.0, after[0] - before[1]) for before, after in pairwise(given))


def without_the_last(events: Iterable[Event]) -> float:
    """Of the merged intervals all but the last."""
    given = sorted(intervals(events))
    begins = [start for i, (start, _) in enumerate(given) if i and start > max(end for _, end in given[:i])]
    return covered(e for e in events if e["ts"] < begins[-1]) if begins else 0.0


def in_listed_order(events: Iterable[Event]) -> float:
    """By a right loop, over intervals that nobody has sorted."""
    return _looped(intervals(events), max)


def dur_as_end(events: Iterable[Event]) -> float:
    """By a right loop, over (ts, dur)."""
    return _looped(sorted((event["ts"], event["dur"]) for event in events), max)


def ends_taken_away(events: Iterable[Event]) -> float:
    """By a loop in which an interval inside an earlier one takes away what it lacks to that one's end."""
    total, reached = 0.0, -np.inf
    for start, end in sorted(intervals(events)):
        total += end - max(start, reached)
        reached = max(reached, end)
    return float(total)


def _looped(given: Iterable[Interval], reach) -> float:
    total, reached = 0.0, -np.inf
    for start, end in given:
        total += max(0.0, end - max(start, reached))
        reached = reach(reached, end)
    return float(total)
