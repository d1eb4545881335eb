"""What goes wrong in filling buckets: exercise 5 of lab 08 with one mistake each, on the parameters' numbers."""

from __future__ import annotations


def fill(
    parameters,
    bucket_bytes,
    first_bytes,
    *,
    reverse=True,
    size=lambda p: p.nbytes,
    kind=lambda p: p.dtype,
    fits=lambda size, room: size <= room,
    first="begun",
    on_change=False,
    order="complete",
    alone=True,
    reopened=False,
):
    """The right answer, and with other settings a wrong one.

    first: which buckets have first_bytes: the one 'begun' first, 'each dtype', 'none', 'all', or those up to the first
    that holds something ('empty'). on_change: a bucket ends where the dtype changes. order: 'complete', 'begun' or
    'dtype'. alone: a parameter that is too large is alone. reopened: an earlier bucket that still has room is taken.
    """
    buckets: list[list[int]] = []
    rooms, kinds, last = [], [], None
    numbers = range(len(parameters))
    for i in reversed(numbers) if reverse else numbers:
        p = parameters[i]
        mine = [n for n, other in enumerate(kinds) if other == kind(p)]
        if on_change and last is not None and last != kind(p):
            mine = []
        last = kind(p)
        open_ones = mine if reopened else mine[-1:]
        taken = next((n for n in open_ones if fits(size(p), rooms[n])), None)
        if taken is None and not alone and open_ones and rooms[open_ones[-1]] > 0:
            taken = open_ones[-1]
        if taken is None:
            small = {
                "begun": not buckets,
                "each dtype": not mine,
                "none": False,
                "all": True,
            }[first]
            buckets.append([])
            rooms.append(first_bytes if small else bucket_bytes)
            kinds.append(kind(p))
            taken = len(buckets) - 1
        buckets[taken].append(i)
        rooms[taken] -= size(p)
    if order == "complete":
        return sorted(buckets, key=lambda bucket: -bucket[-1] if reverse else bucket[-1])
    if order == "dtype":
        seen = list(dict.fromkeys(kinds))
        return [bucket for one in seen for bucket, other in zip(buckets, kinds, strict=True) if other == one]
    return buckets


def _mistake(sentence, **settings):
    return sentence, lambda *arguments: fill(*arguments, **settings)


def _changed(sentence, change, **settings):
    return sentence, lambda *arguments: change(fill(*arguments, **settings))


def _strays(buckets):
    return buckets[:-1]


def _single(parameters, *_):
    return [[i] for i in reversed(range(len(parameters)))]


MODEL = "the buckets are filled in the model's order; gradients arrive from the last parameter to the first"
ORDER = "buckets stand in the order in which they were begun; with several dtypes another may be complete before"
FULL = "a parameter that fills its bucket to the last byte still fits: compare with <=, not <"
CHANGE = (
    "a bucket ends where the dtype changes; the bucket of each dtype stays open, so that two dtypes in turns fill two"
)
MIXED = "a bucket holds several dtypes: one flat tensor has one"
EXCEED = "a bucket is closed after it has become too large, not before"
EACH = "each dtype's first bucket has first_bytes; only the one that is begun first has"
MISTAKES = [
    _mistake(MODEL, reverse=False),
    _mistake(MODEL, reverse=False, order="begun"),
    _changed(
        "the list of buckets is reversed, but each was filled in the model's order", lambda b: b[::-1], reverse=False
    ),
    _changed(
        "the list of buckets is reversed, but each was filled in the model's order",
        lambda b: b[::-1],
        reverse=False,
        order="begun",
    ),
    _changed("within a bucket the parameters stand in the model's order", lambda b: [sorted(one) for one in b]),
    _changed(
        "within a bucket the parameters stand in the model's order", lambda b: [sorted(one) for one in b], order="begun"
    ),
    _changed("the buckets are in reverse: the first to be complete comes first", lambda b: b[::-1]),
    _changed("the buckets are in reverse: the first to be complete comes first", lambda b: b[::-1], order="begun"),
    _mistake(ORDER, order="begun"),
    _mistake("the buckets of one dtype come first, then those of the next", order="dtype"),
    _mistake("first_bytes is not used", first="none"),
    _mistake("first_bytes is not used", first="none", order="begun"),
    _mistake("all buckets have first_bytes", first="all"),
    _mistake("all buckets have first_bytes", first="all", order="begun"),
    _mistake(EACH, first="each dtype"),
    _mistake(EACH, first="each dtype", order="begun"),
    _mistake(EACH, first="each dtype", order="dtype"),
    _mistake(FULL, fits=lambda size, room: size < room),
    _mistake(FULL, fits=lambda size, room: size < room, order="begun"),
    _mistake(CHANGE, on_change=True),
    _mistake(CHANGE, on_change=True, order="begun"),
    _mistake(MIXED, kind=lambda p: 0),
    _mistake("elements are counted, not bytes: nbytes, not numel()", size=lambda p: p.numel()),
    _mistake("elements are counted, not bytes: nbytes, not numel()", size=lambda p: p.numel(), order="begun"),
    _mistake("every element counts 4 bytes; there are other dtypes: nbytes", size=lambda p: 4 * p.numel()),
    _mistake(
        "every element counts 4 bytes; there are other dtypes: nbytes", size=lambda p: 4 * p.numel(), order="begun"
    ),
    _mistake("len() is the first dimension: nbytes", size=len),
    _mistake(EXCEED, alone=False, fits=lambda size, room: room > 0),
    _mistake(EXCEED, alone=False, fits=lambda size, room: room > 0, order="begun"),
    _mistake(EXCEED, fits=lambda size, room: room >= 0),
    _mistake(
        "a bucket that was left because something did not fit is filled later; gradients arrive in one order",
        reopened=True,
    ),
    _mistake(
        "a bucket that was left because something did not fit is filled later; gradients arrive in one order",
        reopened=True,
        order="begun",
    ),
    ("every parameter has a bucket of its own", _single),
    _changed("the last bucket is forgotten: what is being filled at the end is a bucket too", _strays),
    _changed("the last bucket is forgotten: what is being filled at the end is a bucket too", _strays, order="begun"),
    _changed("there is an empty bucket", lambda b: [[], *b]),
]
ERRORS = (
    (
        r"Boolean value of Tensor|must match the size of tensor",
        (
            "`in`, == and index() compare tensors element by element; id(parameter), a dict or "
            "enumerate tell which one it is"
        ),
    ),
    (r"KeyError: torch\.", "the first parameter of a dtype finds no bucket yet"),
    (r"IndexError", "there is no bucket at first, and the list may be empty"),
    (r"reversed|not reversible", "reversed() takes a list, and returns an iterator"),
    (r"has no attribute 'nbytes'", "nbytes belongs to a parameter, not to a list of them"),
)
