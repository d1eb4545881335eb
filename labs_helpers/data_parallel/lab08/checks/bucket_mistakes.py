"""What goes wrong in filling buckets: exercise 5 of lab 08 with one mistake each, on the parameters' numbers."""

from __future__ import annotations

import operator
from functools import partial
from math import inf

from labs_helpers.course.verdict.messages.torch import SIZES_DIFFER


def fill(
    parameters,
    bucket_bytes,
    first_bytes,
    *,
    reverse=True,
    size=lambda p: p.nbytes,
    kind=lambda p: p.dtype,
    fits=operator.le,
    first=lambda begun, mine, closed: not begun,
    on_change=False,
    order="complete",
    large="alone",
    reopened=False,
    reset=True,
    eager=False,
    shared=False,
    counted=True,
    set_apart=False,
    then=lambda buckets: buckets,
):
    """The right answer, and with other settings a wrong one: buckets of the parameters' numbers.

    first: whether a bucket has first_bytes, by the lists of those before it, of its dtype's and of the closed ones.
    on_change: a bucket ends where the dtype changes. order: a key of `orders`. large: a
    parameter that does not fit is 'alone' in a new bucket, or 'fills' the old one beyond its end; 'joins': only one
    larger than any bucket does. reopened: an earlier bucket that still has room is taken. reset: a new bucket has all
    its room. eager: a first bucket that is too small is left empty.
    shared: one room for all dtypes. counted: what is put in takes room. set_apart: the bucket that was being filled
    when one larger than it came goes on. then: what becomes of the list.
    """
    buckets: list[list[int]] = []
    rooms, kinds, closed, last = [], [], [], None
    numbers = range(len(parameters))
    for i in reversed(numbers) if reverse else numbers:
        p, begun = parameters[i], len(buckets)
        mine = [n for n, other in enumerate(kinds) if other == kind(p)]
        if on_change and last is not None and last != kind(p):
            mine = []
        last = kind(p)
        open_ones = mine if reopened else mine[-1:]
        taken = next((n for n in open_ones if fits(size(p), rooms[n])), None)
        if taken is None and open_ones:
            full = open_ones[-1]
            if (large == "fills" and rooms[full] > 0) or (large == "joins" and size(p) > bucket_bytes):
                taken = full
        if taken is None:
            small = first(buckets, mine, closed)
            if eager and not buckets and not fits(size(p), first_bytes):
                buckets, rooms, kinds, small = [[]], [0], [kind(p)], False
            closed += mine[-1:]
            rooms.append((first_bytes if small else bucket_bytes) if reset or not mine else min(0, rooms[mine[-1]]))
            buckets.append([])
            kinds.append(kind(p))
            taken = len(buckets) - 1
        buckets[taken].append(i)
        if set_apart and mine and len(buckets) > begun and size(p) > bucket_bytes:
            kinds[taken] = None  # nothing finds it
        if shared and len(buckets) > begun:
            rooms = [rooms[taken]] * len(rooms)
        rooms = [room - size(p) * counted if shared or n == taken else room for n, room in enumerate(rooms)]
    begun = list(range(len(buckets)))
    orders = {
        "begun": begun,
        "closed": closed + [n for n in begun if n not in closed],
        "closed alone": closed,
        "closed, then dtype": closed + sorted(set(begun) - set(closed), key=lambda n: kinds.index(kinds[n])),
        "complete": sorted(
            begun, key=lambda n: (-buckets[n][-1] if reverse else buckets[n][-1]) if buckets[n] else -inf
        ),
        "dtype": sorted(begun, key=lambda n: kinds.index(kinds[n])),
    }
    return then([buckets[n] for n in orders[order]])


def _without_large(parameters, bucket_bytes, first_bytes):
    number = {id(p): i for i, p in enumerate(parameters)}
    small = [p for p in parameters if p.nbytes <= bucket_bytes]
    return [[number[id(small[i])] for i in bucket] for bucket in fill(small, bucket_bytes, first_bytes)]


TURNED = operator.itemgetter(slice(None, None, -1))
ORDER = "buckets stand in the order in which they were begun; with several dtypes another may be complete before"
CLOSED = "buckets stand in the order in which they were closed; one that is still open may be complete before"
CHANGE = "a bucket ends where the dtype changes; that of each dtype stays open, so that two dtypes in turns fill two"
EACH_DTYPE = "each dtype's first bucket has first_bytes; only the one that is begun first has"
EXCEED = "a bucket is closed after it has become too large, not before"
# How an answer may go about it otherwise. Each alone, and with each of the mistakes below:
WAYS = (
    ("", {}),
    (ORDER, {"order": "begun"}),
    (CLOSED, {"order": "closed", "first": lambda begun, mine, closed: not closed}),
    ("the buckets of one dtype come first, then those of the next", {"order": "dtype"}),
    ("a bucket holds several dtypes: one flat tensor has one", {"kind": lambda p: 0}),
    (CHANGE, {"on_change": True}),
)
SETTINGS = (
    ("the buckets are filled in the model's order; gradients arrive from the last to the first", {"reverse": False}),
    ("first_bytes is not used", {"first": lambda *_: False}),
    ("all buckets have first_bytes", {"first": lambda *_: True}),
    (EACH_DTYPE, {"first": lambda begun, mine, closed: not mine}),
    ("a parameter that fills its bucket to the last byte still fits: compare with <=, not <", {"fits": operator.lt}),
    ("elements are counted, not bytes: nbytes, not numel()", {"size": lambda p: p.numel()}),
    ("every element counts 4 bytes; there are other dtypes: nbytes", {"size": lambda p: 4 * p.numel()}),
    (EXCEED, {"large": "fills"}),
    (EXCEED, {"fits": lambda size, room: room > 0}),
    (EXCEED, {"fits": lambda size, room: room >= 0}),
    ("a parameter larger than any bucket joins the one that is being filled; it has one alone", {"large": "joins"}),
    (
        "a bucket that was left because something did not fit is filled later; go on with the new one",
        {"reopened": True},
    ),
    ("the bytes are not counted anew for a new bucket", {"reset": False}),
    ("there is an empty bucket, where the first parameter is larger than first_bytes", {"eager": True}),
    ("the list of buckets is reversed, but each was filled in the model's order", {"reverse": False, "then": TURNED}),
    ("within a bucket the parameters stand in the model's order", {"then": lambda b: [sorted(one) for one in b]}),
    ("the buckets are in reverse: the first to be complete comes first", {"then": TURNED}),
    ("the last bucket is forgotten: what is being filled at the end is a bucket too", {"then": lambda b: b[:-1]}),
    ("the buckets are sorted by their sizes; they stand as they are complete", {"then": lambda b: sorted(b, key=len)}),
)
ALONE = (
    (
        "first_bytes is for the bucket that is begun first, bucket_bytes for the others",
        {"first": lambda begun, mine, closed: begun},
    ),
    ("one count of bytes for all dtypes: each dtype's bucket has its own room", {"shared": True}),
    ("what is in a bucket already is not counted", {"counted": False}),
    ("a bucket goes on being filled behind a parameter that had to have one alone", {"set_apart": True}),
    (CLOSED, {"order": "closed"}),
    (CLOSED, {"order": "closed, then dtype"}),
    ("what is being filled at the end, for each dtype, is a bucket too", {"order": "closed alone"}),
    ("every parameter has a bucket of its own", {"fits": lambda size, room: False}),
)
MISTAKES = [
    *((way, partial(fill, **settings)) for way, settings in WAYS if way),
    *(
        (sentence, partial(fill, **{**settings, **more}))
        for _, settings in WAYS
        for sentence, more in SETTINGS
        if "kind" not in settings or sentence != EACH_DTYPE  # where dtypes are not told apart there is one first bucket
    ),
    *((sentence, partial(fill, **settings)) for sentence, settings in ALONE),
    ("a parameter larger than any bucket is left out; it has a bucket alone", _without_large),
    ("there is one bucket with everything", lambda parameters, *_: [[*range(len(parameters))][::-1]]),
]
ERRORS = (
    (SIZES_DIFFER, "`in`, == and index() compare tensors element by element; id(parameter) tells which one it is"),
    (r"KeyError: torch\.", "the first parameter of a dtype finds no bucket yet"),
    (r"IndexError", "there is no bucket at first, and the list may be empty"),
)
