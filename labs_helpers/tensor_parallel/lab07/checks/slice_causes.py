"""What common mistakes of lab 07's exercise 5 give."""

from itertools import permutations

import numpy as np

from labs_helpers.tensor_parallel.lab07.checks.collect_causes import AXES

VIEW = "a slice is a view, and so is what np.split gives: who writes to one writes to output_grad; .copy() makes it own"
MUST = "np.ascontiguousarray and reshape copy only where they must, and here they need not; .copy() always does"
SENT = "every rank has the whole gradient already, so nothing has to be sent"
ERRORS = (
    (r"^NameError: name 'mp_comm'", SENT),
    (r"^NameError: name '(mp_idx|rank)'", "the rank's place in its model is mp_group_idx here"),
    (r"^IndexError: too many indices", "a slice for each axis: output_grad has three"),
)


def causes(wholes, mp_size):
    """Their answers: each rank's result. wholes: each model's output_grad."""
    batch, length, features = wholes[0].shape
    part = features // mp_size

    def of_all(function):
        """function(output_grad, mp_group_idx) on each rank."""
        return [function(whole, place) for whole in wholes for place in range(mp_size)]

    for sentence, first, end in _slices(batch, length, features, mp_size):
        yield sentence, of_all(lambda whole, i, first=first, end=end: whole[:, :, first(i) : end(i)])
    for axis, name in ((0, "batch"), (1, "length")):
        for width in (part, wholes[0].shape[axis] // mp_size):
            rows = of_all(lambda whole, i, a=axis, n=width: np.moveaxis(whole, a, 0)[i * n : (i + 1) * n])
            moved_back = [np.moveaxis(array, 0, axis) for array in rows]
            yield f"sliced along the axis {axis}, the {name}; the features are axis 2", moved_back
    yield "every mp_size-th feature; a rank's features lie side by side", of_all(lambda w, i: w[:, :, i::mp_size])
    for by in range(1, mp_size):
        yield "it is another rank's slice", of_all(lambda w, i, by=by: np.split(w, mp_size, 2)[(i + by) % mp_size])
    summed = "the parts are added up; a rank keeps its own"
    yield summed, of_all(lambda whole, _: sum(np.split(whole, mp_size, axis=2)))
    yield summed, of_all(lambda whole, _: sum(np.split(whole, mp_size, axis=2)) / mp_size)
    yield "one feature alone", of_all(lambda whole, i: whole[:, :, i])
    yield "it is the whole gradient", of_all(lambda whole, _: whole)
    yield "it is the whole gradient, divided: a part is a slice of it", of_all(lambda whole, _: whole / mp_size)
    elsewhere = of_all(lambda whole, i: whole * (np.arange(features) // part == i).astype(whole.dtype))
    yield "the other ranks' features are 0, and still there", elsewhere
    yield (
        "the rank's index comes first in that reshape, which cuts blocks of rows",
        of_all(lambda whole, i: whole.reshape(mp_size, batch, length, part)[i]),
    )
    right = of_all(lambda whole, i: whole[:, :, i * part : (i + 1) * part])
    yield "divided by mp_size; nothing was added up that a mean would be of", [array / mp_size for array in right]
    yield (
        "multiplied by mp_size; the gradient is whole, and the same on all ranks",
        [array * mp_size for array in right],
    )
    for order in permutations(range(3)):
        if order != (0, 1, 2):
            axes = ", ".join(AXES[1 + axis] for axis in order)
            yield f"the result's axes are ({axes})", [array.transpose(order) for array in right]


def _slices(batch, length, features, mp_size):
    """(sentence, where a rank's slice of the features begins, where it ends)."""
    part = features // mp_size
    start = "a slice begins at mp_group_idx times the width of a part"
    yield start, lambda i: i, lambda i: i + part
    yield start, lambda i: i, lambda i: part
    yield start, lambda i: i, lambda i: (i + 1) * part
    yield start, lambda i: i * part + 1, lambda i: (i + 1) * part + 1
    widths = {n: f"a part is features // mp_size = {part} wide, not {n}" for n in range(1, features) if n != part}
    for name, size in (("length", length), ("batch", batch)):
        widths[size // mp_size] = f"the width of a part is worked out from the {name}; it is features // mp_size"
    widths[mp_size] = "the slices are mp_size features wide; a part is features // mp_size wide"
    for n in widths.keys() - {part}:
        yield widths[n], lambda i, n=n: i * n, lambda i, n=n: (i + 1) * n
    yield widths[mp_size], lambda i: i * part, lambda i: i * part + mp_size
    end = "the end of a slice is the first feature that is not in it"
    yield end, lambda i: i * part, lambda i: (i + 1) * part + 1
    yield end, lambda i: i * part, lambda i: (i + 1) * part - 1
    yield "a slice has no end: it goes on to the last feature", lambda i: i * part, lambda i: features
    yield "a slice has no start: it begins at feature 0", lambda i: 0, lambda i: (i + 1) * part
    same = "the slice is the same on all ranks; mp_group_idx says which is this one's"
    yield same, lambda i: 0, lambda i: part
    yield same, lambda i: features - part, lambda i: features
    yield "the ranks are counted from the other end", lambda i: features - (i + 1) * part, lambda i: features - i * part
    count = "mp_group_idx counts from 0: rank 0's slice begins at feature 0"
    yield count, lambda i: (i - 1) * part, lambda i: i * part
    yield count, lambda i: (i + 1) * part, lambda i: (i + 2) * part
