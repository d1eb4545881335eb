"""Measure intervals with one mistake each, as answers to exercise 7 of lab 08 do."""

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
    """Return the total overlap of the pairs of intervals."""
    return sum(max(least, min(b, d) - max(a, c)) for (a, b), (c, d) in pairs)


def alone(compute, communication, least=0):
    """Return the messages' time less their overlaps with every compute interval."""
    return total(communication) - shared(((x, y) for x in communication for y in compute), least)


def _less_one(compute, communication, pick):
    """Return the messages' time less one overlap per message, which `pick` chooses from those above 0."""
    shares = ([shared([(x, y)]) for y in compute] for x in communication)
    return total(communication) - sum(pick([one for one in some if one > 0] or [0]) for some in shares)


def _whole(compute, communication, within=False):
    """Return the time of the messages that overlap no compute interval; within: that lie inside none."""

    def hidden(a, b):
        return any(c <= a and b <= d if within else c < b and a < d for c, d in compute)

    return total([(a, b) for a, b in communication if not hidden(a, b)])


def _walk(compute, communication, counts=lambda sends, computes: sends and not computes, between=None, how=""):
    """Walk from moment to moment. counts(sends, computes): whether the piece up to the next moment is exposed.

    between: intervals whose moments replace those of both lists. how: with 'flags', the end of one interval ends all;
    with 'strict', an interval covers a piece only if it starts before and ends after it.
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
    """Compute intervals c and messages m, merged as C and M, with the right times: sent, exposed, hidden."""

    def __init__(self, c, m, merge=merged):
        self.c, self.m, self.C, self.M = c, m, merge(c), merge(m)
        self.sent, self.exposed = total(self.M), alone(self.C, self.M)
        self.hidden, self.right = self.sent - self.exposed, (self.sent, self.exposed)


FLAGS = "several intervals may run at the same time: count them, a flag is not enough"
ROUNDED = "the seconds are rounded"
TWICE = "time that two messages share counts twice: merge the messages first"
TAKEN = "overlapping compute intervals are subtracted twice: merge them first"
NEITHER = "neither list is merged: time that two intervals share counts twice"
TOTALS = "the difference of two totals: compute hides communication only while both run"
ANY = "a message counts as hidden if it overlaps any computation at all"
WHOLE = "a partly hidden message counts as fully exposed"
AGAINST_ONE = "each message is compared with only one compute interval"
IDLE = "time without any communication counts as exposed"
MOMENTS = "the starts and ends of compute intervals are moments too"
LATER_END = "an interval inside another ends first: the merged interval keeps the later end"
BY_END = "intervals are sorted by their ends; merging needs them sorted by their starts"
UNSORTED = "intervals are merged in the order given, which may be any: sort them first"
ONE_EMPTY = "if one list is empty, the other still counts"
BOTH_NUMBERS = (  # functions of `Lists` that return both numbers
    ("the two numbers are swapped: return (communicating, exposed)", lambda x: (x.exposed, x.sent)),
    ("compute and communication are swapped", lambda x: (total(x.C), alone(x.M, x.C))),
    ("the first number is the hidden time, not the whole time of communication", lambda x: (x.hidden, x.exposed)),
    ("the first number is the time during which anything runs", lambda x: (total(merged(x.c + x.m)), x.exposed)),
    (
        "the first number runs from the first start to the last end, including the gaps",
        lambda x: (span(x.m), x.exposed),
    ),
    ("the numbers are in milliseconds, not in seconds", lambda x: (1e3 * x.sent, 1e3 * x.exposed)),
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
    (
        "an interval that starts or ends together with a piece covers it too: use <=",
        lambda x: _walk(x.c, x.m, how="strict"),
    ),
    (ROUNDED, lambda x: (round(x.sent, 3), round(x.exposed, 3))),
    (ROUNDED, lambda x: (round(x.sent, 6), round(x.exposed, 6))),
    (ROUNDED, lambda x: (int(1e6 * x.sent) / 1e6, int(1e6 * x.exposed) / 1e6)),
    (ONE_EMPTY, lambda x: x.right if x.c and x.m else (0, 0)),
)
EXPOSED = (  # the second alone
    ("the second number is the hidden time, not the exposed one", lambda x: x.hidden),
    ("the second number is a fraction, not a time in seconds", lambda x: x.exposed / (x.sent or 1)),
    (TWICE, lambda x: alone(x.C, x.m)),
    (TAKEN, lambda x: alone(x.c, x.M)),
    (TAKEN, lambda x: max(0, alone(x.c, x.M))),
    *((TOTALS, lambda x, form=form: form(x.sent - total(x.C))) for form in (abs, partial(max, 0))),
    *((TOTALS, lambda x, form=form: form(x.sent - total(x.c))) for form in (abs, partial(max, 0))),
    (TOTALS, lambda x: max(0, total(x.m) - total(x.c))),
    *((ANY, lambda x, of=of: _whole(x.c, of(x))) for of in (operator.attrgetter("m"), operator.attrgetter("M"))),
    (WHOLE, lambda x: _whole(x.C, x.M, within=True)),
    ("a message may overlap several compute intervals", lambda x: _less_one(x.C, x.M, pick=lambda shares: shares[0])),
    (AGAINST_ONE, lambda x: x.sent - shared(zip(x.M, x.C, strict=False))),
    (AGAINST_ONE, lambda x: _less_one(x.C, x.M, pick=max)),
    ("the overlap of two intervals is never negative: max(0, …)", lambda x: alone(x.C, x.M, least=-inf)),
    ("only the first compute interval is used", lambda x: alone(x.c[:1], x.M)),
    ("nothing is hidden: all communication is counted as exposed", lambda x: x.sent),
    ("everything is hidden: the second number is always 0", lambda x: 0),
)
BY_ENDS = partial(sorted, key=operator.itemgetter(1))
MERGES = (  # wrong ways to merge
    (UNSORTED, partial(merged, order=list)),
    (BY_END, partial(merged, order=BY_ENDS)),
    (LATER_END, partial(merged, keep=lambda new, _: new)),
)
FORMS = (  # answers that use the right lists x and the wrongly merged lists y
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
    (r"cannot unpack|not enough values|too many values", "each list holds pairs (start, end)"),
    (r"max\(\) (arg|iterable)|min\(\) (arg|iterable)", "a list may be empty: give max and min a default="),
    (r"IndexError: list index", "a list may be empty, and its last interval has no successor"),
)
