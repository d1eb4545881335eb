"""What common mistakes of exercises 4 and 6 make of activations that are cut along their features.

Each is a function of (parts, i): what the ranks of a model were given, (mp_size, batch, length, features), and i, the
place of a rank among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import numpy as np

Array = np.ndarray
Mistakes = Iterator[tuple[str, Callable[[Array, int], Array]]]
AXES = ("rank", "batch", "length", "feature")
ROWS = "blocks of rows in place of features: in the order batch, length, feature a rank's features lie apart"
START = "a slice begins at the rank times the width of a part"
END = "the end of a slice is the first feature that is not in it"
SAME = "the slice is the same on all ranks; a rank's place says which is its own"
COUNT = "ranks count from 0: rank 0's slice begins at feature 0"
SLICES = (  # where a slice begins and ends, by the rank's place, the width of a part and the number of features
    (START, lambda i, part, n: (i, i + part)),
    (START, lambda i, part, n: (i, part)),
    (START, lambda i, part, n: (i, (i + 1) * part)),
    (START, lambda i, part, n: (i * part + 1, (i + 1) * part + 1)),
    (END, lambda i, part, n: (i * part, (i + 1) * part + 1)),
    (END, lambda i, part, n: (i * part, (i + 1) * part - 1)),
    ("a slice has no end: it goes on to the last feature", lambda i, part, n: (i * part, n)),
    ("a slice has no start: it begins at feature 0", lambda i, part, n: (0, (i + 1) * part)),
    (SAME, lambda i, part, n: (0, part)),
    (SAME, lambda i, part, n: (n - part, n)),
    (COUNT, lambda i, part, n: ((i - 1) * part, i * part)),
    (COUNT, lambda i, part, n: ((i + 1) * part, (i + 2) * part)),
)


def joined(parts: Array, i: int) -> Array:
    """Exercise 4's result: all features, rank 0's first."""
    return np.concatenate(list(parts), axis=2)


def total(parts: Array) -> Array:
    """Exercise 6's sum."""
    return parts.sum(0, dtype=parts.dtype)


def sliced(whole: Callable[[Array], Array], parts: Array, i: int) -> Array:
    """A rank's features of the whole that a function makes of the parts."""
    return np.split(whole(parts), len(parts), axis=2)[i]


def common(name: str, right: Callable[[Array, int], Array]) -> Mistakes:
    """Mistakes that both can have. name: of what is given."""
    for order in permutations(range(3)):
        axes = ", ".join(AXES[1 + axis] for axis in order)
        yield f"the result's axes are ({axes})", lambda p, i, order=order: right(p, i).transpose(order)
    for dtype in (np.float64, np.float32):
        through = f"the values went through {dtype.__name__}, which does not hold all their digits"
        yield through, lambda p, i, d=dtype: right(p.astype(d), i).astype(p.dtype)
    yield f"it is {name} itself: what was made of it is not returned", lambda p, i: p[i]
    yield "it is another rank's part", lambda p, i: right(p, (i + 1) % len(p))
    yield "it is another rank's part", lambda p, i: right(p, i - 1)
    yield "divided by mp_size; no mean is asked for", lambda p, i: right(p, i) / len(p)
    yield "multiplied by mp_size", lambda p, i: right(p, i) * len(p)


def of_collecting() -> Mistakes:
    as_it_is = "recv is returned as it is: one part behind the other, the rank before the batch"
    yield as_it_is, lambda p, i: p
    yield as_it_is, lambda p, i: p.reshape(-1)
    behind = "a reshape moves nothing: the parts lie behind one another, so the first rows are all of rank 0"
    yield behind, lambda p, i: p.reshape(_whole(p))
    for axis, name in ((0, "batch"), (1, "length")):
        sentence = f"joined along the axis {axis}, the {name}; the features are axis 2"
        yield sentence, lambda p, i, axis=axis: np.concatenate(list(p), axis=axis)
    for axis in (1, 2, 3):
        own_axis = "the rank still has an axis of its own; reshape joins it to the features"
        yield own_axis, lambda p, i, axis=axis: np.moveaxis(p, 0, axis)
    for order in permutations(range(4)):
        axes = ", ".join(AXES[axis] for axis in order)
        sentence = f"its numbers are in the order of the axes ({axes}); they should be (batch, length, rank, feature)"
        if order == (1, 2, 3, 0):
            sentence = "the ranks' features alternate: the rank's axis has to stand before the features', not behind"
        if order != (0, 1, 2, 3):
            yield sentence, lambda p, i, order=order: p.transpose(order).reshape(_whole(p))
        if order not in ((0, 1, 2, 3), (1, 2, 0, 3)):  # right, and what a reshape gives
            read = f"it is what comes of reading recv as ({axes}); Allgather fills it as (rank, batch, length, feature)"
            yield read, partial(_read_as, order)
    yield "the ranks are in reverse order", lambda p, i: joined(p[::-1], i)
    own_first = "each rank has its own features first; they are in the order of the ranks everywhere"
    yield own_first, lambda p, i: joined(np.roll(p, -i, 0), i)
    yield own_first, lambda p, i: joined([p[i], *np.delete(p, i, 0)], i)
    yield "it is the rank's own x, mp_size times", lambda p, i: joined([p[i]] * len(p), i)
    yield "it is rank 0's x, mp_size times: every part is read from one place", lambda p, i: joined([p[0]] * len(p), i)
    alone = "only the rank's own features are there: what the others have is not collected"
    yield alone, lambda p, i: joined(p * (np.arange(len(p)) == i)[:, None, None, None].astype(p.dtype), i)
    yield "the parts were added up; they stand side by side", lambda p, i: total(p)


def of_slicing(whole: Callable[[Array], Array]) -> Mistakes:
    """Where a rank's slice is taken of a whole."""

    def cut(p, i, place):
        first, end = place(i, whole(p).shape[2] // len(p), whole(p).shape[2])
        return whole(p)[:, :, first:end]

    for sentence, place in SLICES:
        yield sentence, partial(cut, place=place)
    for name, axis in (("batch", 0), ("length", 1)):
        there = f"sliced along the axis {axis}, the {name}; the features are axis 2"
        yield there, lambda p, i, a=axis: np.array_split(whole(p), len(p), a)[i]
        yield there, lambda p, i, a=axis: np.moveaxis(_block(np.moveaxis(whole(p), a, 0), p, i), 0, a)
        width = f"the width of a part is worked out from the {name}; it is features // mp_size"
        yield width, lambda p, i, a=axis: _block(whole(p), p, i, whole(p).shape[a] // len(p))
    wide = "the slices are mp_size features wide; a part is features // mp_size wide"
    yield wide, lambda p, i: _block(whole(p), p, i, len(p))
    yield wide, lambda p, i: sliced(whole, p, i)[:, :, : len(p)]
    yield "every mp_size-th feature; a rank's lie side by side", lambda p, i: whole(p)[:, :, i :: len(p)]
    yield ROWS, lambda p, i: whole(p).reshape(len(p), *whole(p).shape[:2], -1)[i]
    summed = "the parts of one gradient are added up; a rank keeps its own"
    yield summed, lambda p, i: sum(np.split(p[i], len(p), axis=2))
    yield "it is the whole, divided: a part is a slice of it", lambda p, i: whole(p) / len(p)
    others = "the other ranks' features are 0, and still there"
    yield others, lambda p, i: joined([one * (i == j) for j, one in enumerate(np.split(whole(p), len(p), 2))], i)


def of_summing() -> Mistakes:
    for order in permutations(range(4)):
        axes = ", ".join(AXES[axis] for axis in order)
        sentence = f"what is sent has the axes ({axes}), in place of (rank, batch, length, feature)"
        if abs(order.index(0) - order.index(3)) > 1 or order.index(3) < order.index(0):  # else below, with 3 axes
            yield sentence, partial(_sent_as, order)
    for order in permutations(range(3)):
        axes = ", ".join(AXES[1 + axis] for axis in order)
        read = f"what is sent has the axes ({axes}), and recv is read as (batch, length, feature)"
        if order != (0, 1, 2):  # else ROWS
            yield read, lambda p, i, o=order: total(p).transpose(o).reshape(len(p), *p.shape[1:3], -1)[i]
    yield "it is the whole sum, of which a rank keeps its slice", lambda p, i: total(p)
    alone = "the rank's own gradient alone: nothing is added up"
    yield alone, lambda p, i: sliced(lambda p: p[i], p, i)
    yield f"{alone}, and blocks of rows", lambda p, i: p[i].reshape(len(p), *p.shape[1:3], -1)[i]
    yield "one rank's gradient alone: nothing is added up", lambda p, i: sliced(lambda p: p[0], p, i)
    yield "one rank's gradient alone: nothing is added up", lambda p, i: sliced(lambda p: p[-1], p, i)
    yield "the rank's own part, mp_size times", lambda p, i: len(p) * sliced(lambda p: p[i], p, i)
    yield "the rank's own part is missing", lambda p, i: sliced(lambda p: total(p) - p[i], p, i)
    yield "the rank's own part is in it twice", lambda p, i: sliced(lambda p: total(p) + p[i], p, i)
    largest = "the largest, not the sum: op is MPI.SUM unless it is told otherwise"
    yield largest, lambda p, i: sliced(lambda p: p.max(0), p, i)
    apart = "the parts have all come, and are not added up"
    yield apart, lambda p, i: np.stack([np.split(one, len(p), axis=2)[i] for one in p])
    yield apart, lambda p, i: joined([np.split(one, len(p), axis=2)[i] for one in p], i)


def _whole(p: Array) -> tuple[int, ...]:
    """The shape of all features together."""
    return *p.shape[1:3], p.shape[0] * p.shape[3]


def _read_as(order: tuple[int, ...], p: Array, i: int) -> Array:
    """recv with its axes in another order, read as if it were filled so."""
    shape = [p.shape[axis] for axis in order]
    return p.reshape(shape).transpose([order.index(axis) for axis in (1, 2, 0, 3)]).reshape(_whole(p))


def _sent_as(order: tuple[int, ...], p: Array, i: int) -> Array:
    """A block of the sum, sent with its axes (rank, batch, length, feature) in another order."""
    mp_size, batch, length, features = p.shape
    cut = total(p).reshape(batch, length, mp_size, features // mp_size)
    return cut.transpose([(2, 0, 1, 3)[axis] for axis in order]).reshape(mp_size, batch, length, -1)[i]


def _block(array: Array, p: Array, i: int, width: int = 0) -> Array:
    """The i-th `width` features; without it, the i-th rows, as many as a part has features."""
    part = array.shape[2] // len(p)
    return array[:, :, i * width : (i + 1) * width] if width else array[i * part : (i + 1) * part]
