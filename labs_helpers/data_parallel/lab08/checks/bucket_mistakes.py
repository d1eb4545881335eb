"""Fill buckets with one mistake each, as answers to exercise 5 of lab 08 do; buckets hold parameters' numbers."""

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
    """Return the right buckets of the parameters' numbers; other settings than the defaults make mistakes.

    first: whether a bucket has first_bytes, given the lists of all earlier buckets, those of its dtype and the closed
    ones. on_change: close a bucket when the dtype changes. order: a key of `orders`. large: a parameter that does not
    fit opens a new bucket ('alone') or overfills the old one ('fills'); with 'joins', only a parameter larger than any
    bucket does. reopened: use an earlier bucket that still has room. reset: a new bucket starts with its full room.
    eager: leave a first bucket empty if it is too small. shared: all dtypes share one room. counted: a parameter
    reduces the room. set_apart: keep filling the open bucket after a parameter that is larger than it. then: change
    the finished list.
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
            kinds[taken] = None  # no dtype equals None
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
ORDER = "the buckets are in the order of opening; with several dtypes, a later one may be complete earlier"
CLOSED = "the buckets are in the order of closing; one that is still open may be complete earlier"
CHANGE = "a bucket is closed when the dtype changes; keep one bucket open per dtype"
EACH_DTYPE = "each dtype's first bucket has first_bytes; only the very first bucket may"
EXCEED = "a bucket is closed after it exceeds its limit, not before"
# Other ways to organize an answer, each alone and with each of the mistakes below:
WAYS = (
    ("", {}),
    (ORDER, {"order": "begun"}),
    (CLOSED, {"order": "closed", "first": lambda begun, mine, closed: not closed}),
    ("the buckets are sorted by dtype", {"order": "dtype"}),
    ("a bucket holds several dtypes, but a flat tensor has a single dtype", {"kind": lambda p: 0}),
    (CHANGE, {"on_change": True}),
)
SETTINGS = (
    ("the buckets are filled in the model's order, but gradients arrive from last to first", {"reverse": False}),
    ("first_bytes is not used", {"first": lambda *_: False}),
    ("all buckets have first_bytes", {"first": lambda *_: True}),
    (EACH_DTYPE, {"first": lambda begun, mine, closed: not mine}),
    ("a parameter that fills its bucket to the last byte still fits: compare with <=, not <", {"fits": operator.lt}),
    ("the sizes are counted in elements, not in bytes: use nbytes, not numel()", {"size": lambda p: p.numel()}),
    ("every element counts as 4 bytes, but dtypes differ: use nbytes", {"size": lambda p: 4 * p.numel()}),
    (EXCEED, {"large": "fills"}),
    (EXCEED, {"fits": lambda size, room: room > 0}),
    (EXCEED, {"fits": lambda size, room: room >= 0}),
    ("a parameter larger than the limit joins the open bucket; it needs its own bucket", {"large": "joins"}),
    (
        "a closed bucket is filled again later; continue with the new bucket",
        {"reopened": True},
    ),
    ("the count of bytes is not reset for a new bucket", {"reset": False}),
    ("a bucket is empty, because the first parameter is larger than first_bytes", {"eager": True}),
    (
        "the list of buckets is reversed, but each bucket was filled in the model's order",
        {"reverse": False, "then": TURNED},
    ),
    (
        "the parameters in each bucket are in the model's order, not in the order of arrival",
        {"then": lambda b: [sorted(one) for one in b]},
    ),
    ("the buckets are in reverse order: put the one that is complete first at the front", {"then": TURNED}),
    ("the last bucket is missing: the bucket that is open at the end counts too", {"then": lambda b: b[:-1]}),
    ("the buckets are sorted by size, not by completion", {"then": lambda b: sorted(b, key=len)}),
)
ALONE = (
    (
        "first_bytes is the limit of the bucket opened first, and bucket_bytes that of the others",
        {"first": lambda begun, mine, closed: begun},
    ),
    ("all dtypes share one count of bytes; count each dtype's bucket separately", {"shared": True}),
    ("the bytes already in a bucket are not counted", {"counted": False}),
    ("after a parameter larger than the limit, the bucket before it is filled further", {"set_apart": True}),
    (CLOSED, {"order": "closed"}),
    (CLOSED, {"order": "closed, then dtype"}),
    ("the buckets that are open at the end, one per dtype, are missing", {"order": "closed alone"}),
    ("every parameter is alone in its bucket", {"fits": lambda size, room: False}),
)
MISTAKES = [
    *((way, partial(fill, **settings)) for way, settings in WAYS if way),
    *(
        (sentence, partial(fill, **{**settings, **more}))
        for _, settings in WAYS
        for sentence, more in SETTINGS
        if "kind" not in settings or sentence != EACH_DTYPE  # without dtypes there is a single first bucket
    ),
    *((sentence, partial(fill, **settings)) for sentence, settings in ALONE),
    ("a parameter larger than the limit is missing; it needs its own bucket", _without_large),
    ("all parameters are in one bucket", lambda parameters, *_: [[*range(len(parameters))][::-1]]),
]
ERRORS = (
    (SIZES_DIFFER, "`in`, == and index() compare tensors element by element; id(parameter) identifies a parameter"),
    (r"KeyError: torch\.", "the first parameter of a dtype has no open bucket yet"),
    (r"IndexError", "no bucket exists at first, and the list of parameters may be empty"),
)
