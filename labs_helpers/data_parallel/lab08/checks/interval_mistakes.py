"""What goes wrong with intervals: exercise 7 of lab 08 with one mistake each."""

from __future__ import annotations

from itertools import pairwise


def lengths(compute, communication):
    """The right answer for intervals of whole numbers, tick by tick."""
    computing, sending = (_ticks(some) for some in (compute, communication))
    return len(sending), len(sending - computing)


def _ticks(intervals) -> set[int]:
    return {tick for start, end in intervals for tick in range(start, end)}


def merged(intervals, order=sorted, keep=max):
    union: list = []
    for start, end in order(intervals):
        if union and start <= union[-1][1]:
            union[-1] = (union[-1][0], keep(end, union[-1][1]))
        else:
            union.append((start, end))
    return union


def total(intervals):
    return sum(end - start for start, end in intervals)


def shared(some, others):
    """Of every pair what both have."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in some for c, d in others)


def alone(compute, communication):
    return total(communication) - shared(communication, compute)


def _whole(compute, communication):
    """Only messages that nothing touches."""
    return total([(a, b) for a, b in communication if not any(c < b and a < d for c, d in compute)])


def _outside(compute, communication):
    """Only messages that do not lie within a compute interval, whole."""
    return total([(a, b) for a, b in communication if not any(c <= a and b <= d for c, d in compute)])


def _first_only(compute, communication):
    """Each message less the first compute interval that it meets."""
    result = 0
    for a, b in communication:
        met = [max(0, min(b, d) - max(a, c)) for c, d in compute]
        result += b - a - next((one for one in met if one > 0), 0)
    return result


def _after(compute, communication):
    end = max((d for _, d in compute), default=0)
    return total([(max(a, end), b) for a, b in communication if b > end])


def _span(intervals):
    return max((b for _, b in intervals), default=0) - min((a for a, _ in intervals), default=0)


def _unsorted(intervals):
    return merged(intervals, order=list)


def _last_end(intervals):
    return merged(intervals, keep=lambda new, _: new)


def _right(compute, communication):
    sending = merged(communication)
    return total(sending), alone(merged(compute), sending)


def _both(merge):
    def function(compute, communication):
        sending = merge(communication)
        return total(sending), alone(merge(compute), sending)

    return function


def _exposed(function):
    """With this exposed time, everything else right."""
    return lambda compute, communication: (_right(compute, communication)[0], function(compute, communication))


def _signed(compute, communication):
    """An overlap of what does not overlap, below 0."""
    return total(communication) - sum(min(b, d) - max(a, c) for a, b in communication for c, d in compute)


def _trimmed(intervals):
    """Each begins where the one before ends, also where that was later."""
    cut: list = []
    for start, end in sorted(intervals):
        cut.append((max(start, cut[-1][1]) if cut else start, end))
    return cut


def _by_end(intervals):
    return merged(intervals, order=lambda some: sorted(some, key=lambda one: one[1]))


def _pairs(compute, communication):
    met = zip(communication, compute, strict=False)
    return total(communication) - sum(max(0, min(b, d) - max(a, c)) for (a, b), (c, d) in met)


def _pieces(compute, communication, between=(), flags=False, strict=False):
    """(length, whether it communicates, whether it computes) of each piece between two moments.

    between: whose moments, in place of both lists'. flags: what has ended once has ended, however many run. strict: an
    interval covers what lies within it alone.
    """
    moments = sorted({t for interval in between or [*compute, *communication] for t in interval})

    def runs(intervals, start, end):
        if flags:
            ended = max((b for _, b in intervals if b <= start), default=float("-inf"))
            return any(a <= start < b and a >= ended for a, b in intervals)
        if strict:
            return any(a < start and end < b for a, b in intervals)
        return any(a <= start and end <= b for a, b in intervals)

    return [(b - a, runs(communication, a, b), runs(compute, a, b)) for a, b in pairwise(moments)]


def _walk(counts=lambda sends, computes: sends and not computes, **how):
    """A walk through the moments; counts: what is added to the exposed time."""

    def function(compute, communication):
        pieces = _pieces(compute, communication, **how)
        return (
            sum(length for length, sends, _ in pieces if sends),
            sum(length for length, sends, computes in pieces if counts(sends, computes)),
        )

    return function


def _own_moments(compute, communication):
    return _walk(between=communication)(compute, communication) if communication else (0, 0)


def _longest(compute, communication):
    """Each message less the compute interval that it shares most with."""
    return sum(b - a - max((shared([(a, b)], [one]) for one in compute), default=0) for a, b in communication)


def _whole_ms(digits):
    return lambda compute, communication: tuple(round(one, digits) for one in _right(compute, communication))


def _cut(compute, communication):
    return tuple(int(1e6 * one) / 1e6 for one in _right(compute, communication))


FLAGS = "several may run at once: what begins and ends is counted, and not only noted as running or not"
ROUNDED = "the seconds are rounded"
TWICE = "time that two messages share is counted twice: merge the messages first"
TAKEN = "compute intervals that overlap are taken off twice: merge them first"
NEITHER = "neither list is merged: time that two intervals share counts twice"
TOTALS = "it is a difference of two totals; compute hides communication only where both run at the same time"
ANY = "a message counts as hidden as soon as it meets any computation"
WHOLE = "a message that is hidden in part counts as exposed in whole"
MISTAKES = [
    ("(communicating, exposed) is returned the other way round", lambda c, m: _right(c, m)[::-1]),
    ("compute and communication are swapped", lambda c, m: _right(m, c)),
    (
        "the first number is the hidden time, not all of it",
        lambda c, m: (_right(c, m)[0] - _right(c, m)[1], _right(c, m)[1]),
    ),
    (
        "the second number is the hidden time, not the exposed one",
        lambda c, m: (_right(c, m)[0], _right(c, m)[0] - _right(c, m)[1]),
    ),
    (
        "the second number is a share; seconds are asked for",
        lambda c, m: (_right(c, m)[0], _right(c, m)[1] / (_right(c, m)[0] or 1)),
    ),
    ("in ms; seconds are asked for", lambda c, m: tuple(1e3 * one for one in _right(c, m))),
    (TWICE, lambda c, m: (total(m), alone(merged(c), m))),
    (TWICE, lambda c, m: (total(m), _right(c, m)[1])),
    (TWICE, _exposed(lambda c, m: alone(merged(c), m))),
    (TAKEN, _exposed(lambda c, m: alone(c, merged(m)))),
    (TAKEN, _exposed(lambda c, m: max(0, alone(c, merged(m))))),
    (NEITHER, lambda c, m: (total(m), alone(c, m))),
    (NEITHER, lambda c, m: (total(m), max(0, alone(c, m)))),
    (TOTALS, _exposed(lambda c, m: max(0, total(merged(m)) - total(merged(c))))),
    (TOTALS, _exposed(lambda c, m: abs(total(merged(m)) - total(merged(c))))),
    (TOTALS, _exposed(lambda c, m: max(0, total(merged(m)) - _span(c)))),
    (TOTALS, _exposed(lambda c, m: max(0, total(m) - total(c)))),
    (TOTALS, lambda c, m: (total(m), total(m) - total(c))),
    (TOTALS, lambda c, m: (total(m), max(0, total(m) - total(c)))),
    (ANY, _exposed(lambda c, m: _whole(c, merged(m)))),
    (ANY, lambda c, m: (total(m), _whole(c, m))),
    (WHOLE, _exposed(lambda c, m: _outside(merged(c), merged(m)))),
    (WHOLE, lambda c, m: (total(m), _outside(c, m))),
    ("a message may meet several compute intervals", _exposed(lambda c, m: _first_only(merged(c), merged(m)))),
    ("each message is held against one compute interval alone", _exposed(lambda c, m: _pairs(merged(c), merged(m)))),
    ("exposed is not only what comes after the last computation", _exposed(lambda c, m: _after(c, merged(m)))),
    ("what intervals share is never below 0: max(0, …)", _exposed(lambda c, m: _signed(merged(c), merged(m)))),
    (
        "it is the time from the first beginning to the last end, with the gaps",
        lambda c, m: (_span(m), _right(c, m)[1]),
    ),
    ("intervals are merged as they stand; they come in any order: sort them first", _both(_unsorted)),
    ("intervals are sorted by their ends; merging needs them by their beginnings", _both(_by_end)),
    ("an interval within another ends before it: the end of what is merged is the later of the two", _both(_last_end)),
    ("an interval within another has nothing left of it, and not less than nothing", _both(_trimmed)),
    ("moments at which computing begins or ends are moments too: between two, nothing changes", _own_moments),
    ("time in which nothing communicates counts as exposed", _walk(lambda sends, computes: not computes)),
    ("time in which nothing communicates counts as exposed", _walk(lambda sends, computes: sends != computes)),
    (FLAGS, _walk(flags=True)),
    (ROUNDED, _whole_ms(3)),
    (ROUNDED, _whole_ms(6)),
    (ROUNDED, _cut),
    ("each message is held against one compute interval alone", _exposed(lambda c, m: _longest(merged(c), merged(m)))),
    ("only the first compute interval is looked at", _exposed(lambda c, m: alone(c[:1], merged(m)))),
    (
        "where one of the lists is empty the other still counts",
        lambda c, m: _right(c, m) if c and m else (0, 0),
    ),
    ("the first number is the time in which anything runs", lambda c, m: (total(merged(c + m)), _right(c, m)[1])),
    ("an interval that begins or ends where a piece does covers it too: <=", _walk(strict=True)),
    (TOTALS, lambda c, m: (_span(m), max(0, _span(m) - _span(c)))),
    ("nothing is hidden: all communication is counted as exposed", _exposed(lambda c, m: _right(c, m)[0])),
    ("everything is hidden: the second number is always 0", lambda c, m: (_right(c, m)[0], 0)),
]
ERRORS = (
    (r"cannot unpack|not enough values|too many values", "each list has pairs (start, end)"),
    (r"max\(\) (arg|iterable)|min\(\) (arg|iterable)", "a list may be empty: max and min take default="),
    (r"IndexError: list index", "a list may be empty, and its last interval has no next one"),
)
