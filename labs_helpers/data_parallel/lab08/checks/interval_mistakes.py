"""What goes wrong with intervals: exercise 7 of lab 08 with one mistake each."""

from __future__ import annotations

import operator
from functools import partial
from itertools import pairwise
from math import inf


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


def span(intervals):
    return max((b for _, b in intervals), default=0) - min((a for a, _ in intervals), default=0)


def shared(pairs, least=0):
    """The sum of what both of every pair of intervals have."""
    return sum(max(least, min(b, d) - max(a, c)) for (a, b), (c, d) in pairs)


def alone(compute, communication, least=0):
    """What is left of the messages without their shares with every compute interval."""
    return total(communication) - shared(((x, y) for x in communication for y in compute), least)


def _less_one(compute, communication, pick):
    """What is left of each message without one of its shares, of those above 0."""
    shares = ([shared([(x, y)]) for y in compute] for x in communication)
    return total(communication) - sum(pick([one for one in some if one > 0] or [0]) for some in shares)


def _whole(compute, communication, within=False):
    """The messages that no compute interval touches, or that lie within none."""

    def hidden(a, b):
        return any(c <= a and b <= d if within else c < b and a < d for c, d in compute)

    return total([(a, b) for a, b in communication if not hidden(a, b)])


def _walk(compute, communication, counts=lambda sends, computes: sends and not computes, between=None, how=""):
    """Go from moment to moment. counts: whether the time to the next is exposed.

    between: whose moments, in place of both lists'. how: 'flags': what has ended once has ended, however many run;
    'strict': an interval covers what lies within it alone.
    """
    whose = [*compute, *communication] if between is None else between
    pieces = list(pairwise(sorted({t for interval in whose for t in interval})))

    def runs(intervals, start, end):
        if how == "flags":
            ended = max((b for _, b in intervals if b <= start), default=-inf)
            return any(a <= start < b and a >= ended for a, b in intervals)
        covers = operator.lt if how == "strict" else operator.le
        return any(covers(a, start) and covers(end, b) for a, b in intervals)

    sends, computes = ([runs(some, *piece) for piece in pieces] for some in (communication, compute))
    exposed = (counts(*both) for both in zip(sends, computes, strict=True))
    return tuple(sum(b - a for (a, b), one in zip(pieces, some, strict=True) if one) for some in (sends, exposed))


class Lists:
    """c, m: compute intervals and messages; C, M: merged. sent, exposed, hidden: what is right."""

    def __init__(self, c, m, merge=merged):
        self.c, self.m, self.C, self.M = c, m, merge(c), merge(m)
        self.sent, self.exposed = total(self.M), alone(self.C, self.M)
        self.hidden, self.right = self.sent - self.exposed, (self.sent, self.exposed)


FLAGS = "several may run at once: what begins and ends is counted, and not only noted as running or not"
ROUNDED = "the seconds are rounded"
TWICE = "time that two messages share is counted twice: merge the messages first"
TAKEN = "compute intervals that overlap are taken off twice: merge them first"
NEITHER = "neither list is merged: time that two intervals share counts twice"
TOTALS = "it is a difference of two totals; compute hides communication only where both run at the same time"
ANY = "a message counts as hidden as soon as it meets any computation"
WHOLE = "a message that is hidden in part counts as exposed in whole"
AGAINST_ONE = "each message is held against one compute interval alone"
IDLE = "time in which nothing communicates counts as exposed"
MOMENTS = "moments at which computing begins or ends are moments too: between two, nothing changes"
LATER_END = "an interval within another ends before it: the end of what is merged is the later of the two"
BY_END = "intervals are sorted by their ends; merging needs them by their beginnings"
UNSORTED = "intervals are merged as they stand; they come in any order: sort them first"
ONE_EMPTY = "where one of the lists is empty the other still counts"
BOTH_NUMBERS = (  # functions of `Lists` that return both numbers
    ("(communicating, exposed) is returned the other way round", lambda x: (x.exposed, x.sent)),
    ("compute and communication are swapped", lambda x: (total(x.C), alone(x.M, x.C))),
    ("the first number is the hidden time, not all of it", lambda x: (x.hidden, x.exposed)),
    ("the first number is the time in which anything runs", lambda x: (total(merged(x.c + x.m)), x.exposed)),
    ("it is the time from the first beginning to the last end, with the gaps", lambda x: (span(x.m), x.exposed)),
    ("in ms; seconds are asked for", lambda x: (1e3 * x.sent, 1e3 * x.exposed)),
    (TWICE, lambda x: (total(x.m), alone(x.C, x.m))),
    (TWICE, lambda x: (total(x.m), x.exposed)),
    (NEITHER, lambda x: (total(x.m), alone(x.c, x.m))),
    (NEITHER, lambda x: (total(x.m), max(0, alone(x.c, x.m)))),
    (TOTALS, lambda x: (total(x.m), total(x.m) - total(x.c))),
    (TOTALS, lambda x: (total(x.m), max(0, total(x.m) - total(x.c)))),
    (ANY, lambda x: (total(x.m), _whole(x.c, x.m))),
    (WHOLE, lambda x: (total(x.m), _whole(x.c, x.m, within=True))),
    (MOMENTS, lambda x: _walk(x.c, x.m, between=x.m)),
    (IDLE, lambda x: _walk(x.c, x.m, counts=lambda sends, computes: not computes)),
    (IDLE, lambda x: _walk(x.c, x.m, counts=lambda sends, computes: sends != computes)),
    (FLAGS, lambda x: _walk(x.c, x.m, how="flags")),
    ("an interval that begins or ends where a piece does covers it too: <=", lambda x: _walk(x.c, x.m, how="strict")),
    (ROUNDED, lambda x: (round(x.sent, 3), round(x.exposed, 3))),
    (ROUNDED, lambda x: (round(x.sent, 6), round(x.exposed, 6))),
    (ROUNDED, lambda x: (int(1e6 * x.sent) / 1e6, int(1e6 * x.exposed) / 1e6)),
    (ONE_EMPTY, lambda x: x.right if x.c and x.m else (0, 0)),
)
EXPOSED = (  # the second alone
    ("the second number is the hidden time, not the exposed one", lambda x: x.hidden),
    ("the second number is a share; seconds are asked for", lambda x: x.exposed / (x.sent or 1)),
    (TWICE, lambda x: alone(x.C, x.m)),
    (TAKEN, lambda x: alone(x.c, x.M)),
    (TAKEN, lambda x: max(0, alone(x.c, x.M))),
    *((TOTALS, lambda x, form=form: form(x.sent - total(x.C))) for form in (abs, partial(max, 0))),
    *((TOTALS, lambda x, form=form: form(x.sent - total(x.c))) for form in (abs, partial(max, 0))),
    (TOTALS, lambda x: max(0, total(x.m) - total(x.c))),
    *((ANY, lambda x, of=of: _whole(x.c, of(x))) for of in (operator.attrgetter("m"), operator.attrgetter("M"))),
    (WHOLE, lambda x: _whole(x.C, x.M, within=True)),
    ("a message may meet several compute intervals", lambda x: _less_one(x.C, x.M, pick=lambda shares: shares[0])),
    (AGAINST_ONE, lambda x: x.sent - shared(zip(x.M, x.C, strict=False))),
    (AGAINST_ONE, lambda x: _less_one(x.C, x.M, pick=max)),
    ("what intervals share is never below 0: max(0, …)", lambda x: alone(x.C, x.M, least=-inf)),
    ("only the first compute interval is looked at", lambda x: alone(x.c[:1], x.M)),
    ("nothing is hidden: all communication is counted as exposed", lambda x: x.sent),
    ("everything is hidden: the second number is always 0", lambda x: 0),
)
BY_ENDS = partial(sorted, key=operator.itemgetter(1))
MERGES = (  # how lists are merged wrongly, alone or both
    (UNSORTED, partial(merged, order=list)),
    (BY_END, partial(merged, order=BY_ENDS)),
    (LATER_END, partial(merged, keep=lambda new, _: new)),
)
FORMS = (  # what comes of it, of the right lists x and of the wrong ones y
    lambda x, y, merge: y.right,
    lambda x, y, merge: (y.sent, total(merge(x.c + x.m)) - total(y.C)),
    lambda x, y, merge: (y.sent, alone(x.C, y.M)),
    lambda x, y, merge: (x.sent, alone(y.C, x.M)),
    lambda x, y, merge: (y.sent, x.exposed),
    lambda x, y, merge: (x.sent, y.exposed),
)


def _merging(form, merge, c, m):
    return form(Lists(c, m), Lists(c, m, merge), merge)


MISTAKES = [
    *((said, partial(_merging, form, merge)) for said, merge in MERGES for form in FORMS),
    *((said, lambda c, m, function=function: function(Lists(c, m))) for said, function in BOTH_NUMBERS),
    *((said, lambda c, m, function=function: (Lists(c, m).sent, function(Lists(c, m)))) for said, function in EXPOSED),
]
ERRORS = (
    (r"cannot unpack|not enough values|too many values", "each list has pairs (start, end)"),
    (r"max\(\) (arg|iterable)|min\(\) (arg|iterable)", "a list may be empty: max and min take default="),
    (r"IndexError: list index", "a list may be empty, and its last interval has no next one"),
)
