"""The arrays that common mistakes give in exercises 4 and 6.

Each mistake is a function of (parts, i): the inputs of the ranks of a model, stacked to (mp_size, batch, length,
features), and the index of a rank among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations

import numpy as np

Array = np.ndarray
Mistakes = Iterator[tuple[str, Callable[[Array, int], Array]]]
AXES = ("rank", "batch", "length", "feature")
ROWS = (
    "it takes blocks of rows instead of features; in (batch, length, feature) order a rank's features are not adjacent"
)
START = "a slice starts at the rank times the width of a part"
END = "a slice ends at the first feature outside it"
SAME = "the slice is the same on all ranks; the rank decides which slice it takes"
COUNT = "ranks are counted from 0, so rank 0's slice starts at feature 0"
SLICES = (  # start and end of a slice, from the rank, the width of a part and the number of features
    (START, lambda i, part, n: (i, i + part)),
    (START, lambda i, part, n: (i, part)),
    (START, lambda i, part, n: (i, (i + 1) * part)),
    (START, lambda i, part, n: (i * part + 1, (i + 1) * part + 1)),
    (END, lambda i, part, n: (i * part, (i + 1) * part + 1)),
    (END, lambda i, part, n: (i * part, (i + 1) * part - 1)),
    ("the slice has no end, so it reaches to the last feature", lambda i, part, n: (i * part, n)),
    ("the slice has no start, so it starts at feature 0", lambda i, part, n: (0, (i + 1) * part)),
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
    """Return a rank's features of whole(parts)."""
    return np.split(whole(parts), len(parts), axis=2)[i]


def common(name: str, right: Callable[[Array, int], Array]) -> Mistakes:
    """Yield mistakes that both exercises share. name: of the input."""
    for order in permutations(range(3)):
        axes = ", ".join(AXES[1 + axis] for axis in order)
        yield f"the result's axes are ({axes})", lambda p, i, order=order: right(p, i).transpose(order)
    for dtype in (np.float64, np.float32):
        through = f"the values were converted to {dtype.__name__}, which cannot hold all their digits"
        yield through, lambda p, i, d=dtype: right(p.astype(d), i).astype(p.dtype)
    yield f"it is {name} itself; the computed result is not returned", lambda p, i: p[i]
    yield "it is another rank's part", lambda p, i: right(p, (i + 1) % len(p))
    yield "it is another rank's part", lambda p, i: right(p, i - 1)
    yield "it is divided by mp_size; return the values without averaging", lambda p, i: right(p, i) / len(p)
    yield "it is multiplied by mp_size", lambda p, i: right(p, i) * len(p)


def of_collecting() -> Mistakes:
    as_it_is = "it is recv unchanged, with the rank as its first axis; join the parts along the features"
    yield as_it_is, lambda p, i: p
    yield as_it_is, lambda p, i: p.reshape(-1)
    behind = "reshape moves no numbers; the parts follow one another, so the first rows all come from rank 0"
    yield behind, lambda p, i: p.reshape(_whole(p))
    for axis, name in ((0, "batch"), (1, "length")):
        sentence = f"the parts are joined along axis {axis}, the {name}; the features are axis 2"
        yield sentence, lambda p, i, axis=axis: np.concatenate(list(p), axis=axis)
    for axis in (1, 2, 3):
        own_axis = "the rank is still a separate axis; merge it into the features with reshape"
        yield own_axis, lambda p, i, axis=axis: np.moveaxis(p, 0, axis)
    for order in permutations(range(4)):
        axes = ", ".join(AXES[axis] for axis in order)
        sentence = f"its numbers are in the axis order ({axes}); it should be (batch, length, rank, feature)"
        if order == (1, 2, 3, 0):
            sentence = "the ranks' features alternate; the rank axis has to come before the feature axis"
        if order != (0, 1, 2, 3):
            yield sentence, lambda p, i, order=order: p.transpose(order).reshape(_whole(p))
        if order not in ((0, 1, 2, 3), (1, 2, 0, 3)):  # right, and what a reshape gives
            read = f"recv is read with the axes ({axes}); Allgather fills it as (rank, batch, length, feature)"
            yield read, partial(_read_as, order)
    yield "the ranks are in reverse order", lambda p, i: joined(p[::-1], i)
    own_first = "each rank puts its own features first; on every rank they come in rank order"
    yield own_first, lambda p, i: joined(np.roll(p, -i, 0), i)
    yield own_first, lambda p, i: joined([p[i], *np.delete(p, i, 0)], i)
    yield "it repeats the rank's own x mp_size times", lambda p, i: joined([p[i]] * len(p), i)
    yield (
        "it repeats rank 0's x mp_size times; every part is read from the same position",
        lambda p, i: joined([p[0]] * len(p), i),
    )
    alone = "it contains only the rank's own features; those of the other ranks are not collected"
    yield alone, lambda p, i: joined(p * (np.arange(len(p)) == i)[:, None, None, None].astype(p.dtype), i)
    yield "the parts are added up; put them side by side", lambda p, i: total(p)


def of_slicing(whole: Callable[[Array], Array]) -> Mistakes:
    """Yield mistakes in taking a rank's slice of a whole."""

    def cut(p, i, place):
        first, end = place(i, whole(p).shape[2] // len(p), whole(p).shape[2])
        return whole(p)[:, :, first:end]

    for sentence, place in SLICES:
        yield sentence, partial(cut, place=place)
    for name, axis in (("batch", 0), ("length", 1)):
        there = f"it is sliced along axis {axis}, the {name}; the features are axis 2"
        yield there, lambda p, i, a=axis: np.array_split(whole(p), len(p), a)[i]
        yield there, lambda p, i, a=axis: np.moveaxis(_block(np.moveaxis(whole(p), a, 0), p, i), 0, a)
        width = f"the width of a part is computed from the {name}; it is features // mp_size"
        yield width, lambda p, i, a=axis: _block(whole(p), p, i, whole(p).shape[a] // len(p))
    wide = "the slices are mp_size features wide; a part is features // mp_size wide"
    yield wide, lambda p, i: _block(whole(p), p, i, len(p))
    yield wide, lambda p, i: sliced(whole, p, i)[:, :, : len(p)]
    yield "it takes every mp_size-th feature; a rank's features are adjacent", lambda p, i: whole(p)[:, :, i :: len(p)]
    yield ROWS, lambda p, i: whole(p).reshape(len(p), *whole(p).shape[:2], -1)[i]
    summed = "it adds up the parts of one gradient; a rank keeps only its own part"
    yield summed, lambda p, i: sum(np.split(p[i], len(p), axis=2))
    yield "it is the whole divided by mp_size; take a slice instead", lambda p, i: whole(p) / len(p)
    others = "it still has the other ranks' features, as zeros"
    yield others, lambda p, i: joined([one * (i == j) for j, one in enumerate(np.split(whole(p), len(p), 2))], i)


def of_summing() -> Mistakes:
    for order in permutations(range(4)):
        axes = ", ".join(AXES[axis] for axis in order)
        sentence = f"send has the axes ({axes}) instead of (rank, batch, length, feature)"
        if abs(order.index(0) - order.index(3)) > 1 or order.index(3) < order.index(0):  # else below, with 3 axes
            yield sentence, partial(_sent_as, order)
    for order in permutations(range(3)):
        axes = ", ".join(AXES[1 + axis] for axis in order)
        read = f"send has the axes ({axes}), but recv is read as (batch, length, feature)"
        if order != (0, 1, 2):  # else ROWS
            yield read, lambda p, i, o=order: total(p).transpose(o).reshape(len(p), *p.shape[1:3], -1)[i]
    yield "it is the whole sum; a rank returns only its slice", lambda p, i: total(p)
    alone = "it contains only the rank's own gradient; nothing is added up"
    yield alone, lambda p, i: sliced(lambda p: p[i], p, i)
    yield f"{alone}, and it takes blocks of rows", lambda p, i: p[i].reshape(len(p), *p.shape[1:3], -1)[i]
    yield "it contains only one rank's gradient; nothing is added up", lambda p, i: sliced(lambda p: p[0], p, i)
    yield "it contains only one rank's gradient; nothing is added up", lambda p, i: sliced(lambda p: p[-1], p, i)
    yield "it is mp_size times the rank's own part", lambda p, i: len(p) * sliced(lambda p: p[i], p, i)
    yield "the rank's own part is missing", lambda p, i: sliced(lambda p: total(p) - p[i], p, i)
    yield "the rank's own part is counted twice", lambda p, i: sliced(lambda p: total(p) + p[i], p, i)
    largest = "it is the maximum, not the sum; leave op at its default, MPI.SUM"
    yield largest, lambda p, i: sliced(lambda p: p.max(0), p, i)
    apart = "all parts have arrived, but they are not added up"
    yield apart, lambda p, i: np.stack([np.split(one, len(p), axis=2)[i] for one in p])
    yield apart, lambda p, i: joined([np.split(one, len(p), axis=2)[i] for one in p], i)


def _whole(p: Array) -> tuple[int, ...]:
    """Return the shape of the whole activation."""
    return *p.shape[1:3], p.shape[0] * p.shape[3]


def _read_as(order: tuple[int, ...], p: Array, i: int) -> Array:
    """Read recv as if Allgather filled it with its axes in another order."""
    shape = [p.shape[axis] for axis in order]
    return p.reshape(shape).transpose([order.index(axis) for axis in (1, 2, 0, 3)]).reshape(_whole(p))


def _sent_as(order: tuple[int, ...], p: Array, i: int) -> Array:
    """Return a block of the sum, sent with its axes (rank, batch, length, feature) in another order."""
    mp_size, batch, length, features = p.shape
    cut = total(p).reshape(batch, length, mp_size, features // mp_size)
    return cut.transpose([(2, 0, 1, 3)[axis] for axis in order]).reshape(mp_size, batch, length, -1)[i]


def _block(array: Array, p: Array, i: int, width: int = 0) -> Array:
    """Return the i-th block of `width` features; without a width, of as many rows as a part has features."""
    part = array.shape[2] // len(p)
    return array[:, :, i * width : (i + 1) * width] if width else array[i * part : (i + 1) * part]
