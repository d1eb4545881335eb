"""Test cases of exercises 4 and 6: activations whose features are split over the ranks of several models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from labs_helpers.tensor_parallel.lab07.checks.activation_mistakes import Array, Mistakes

SHAPE = (3, 5, 4)  # batch, length and features of one rank's slice, all different so that swapped axes show
ERRORS = (
    (
        r"dispatcher for __array_function__|'NoneType'",
        "None is used as an array: methods with a capital letter return None and write the result into recv; gather "
        "and reduce return None on all ranks but one",
    ),
    (
        r"^ValueError: (Allgather|Reduce_scatter\w*): (send has|recv has|\d+ elements)",
        "recv of an all-gather is mp_size times as large as send; send of a reduce-scatter is mp_size times recv",
    ),
)


class Asked(NamedTuple):
    """The task of an exercise. right(parts, i) and mistakes are as in `activation_mistakes`; name: of the input.

    whole: whether the input has all features. cheap: the collectives of which a single call is enough; messages
    suggest the first. several, nothing: the causes to name when the answer is a list of arrays, or None.
    """

    name: str
    right: Callable[[Array, int], Array]
    mistakes: Callable[[], Mistakes]
    advice: str
    several: str
    whole: bool = True
    cheap: Sequence[str] = ()
    errors: Sequence[tuple[str, str]] = ERRORS
    nothing: str = "the result is not returned; Allgather and Reduce_scatter_block write into recv and return nothing"


class Case(NamedTuple):
    """A test case with mp_size ranks per model. shape: of a rank's slice. order: in memory, as in `laid_out`."""

    name: str
    ranks: int
    mp_size: int
    shape: tuple[int, int, int] = SHAPE
    dtype: type = np.float64
    order: str = "C"


def inputs_of(asked: Asked, case: Case) -> list[Array]:
    """Return each rank's input; all numbers are different and exact."""
    batch, length, part = case.shape
    shape = case.ranks, batch, length, part * (case.mp_size if asked.whole else 1)
    numbers = 2 * np.random.default_rng(0).permutation(int(np.prod(shape))) + 1  # odd: no half, double or sum of two
    if np.dtype(case.dtype) == np.int64:
        numbers = 2**60 + 1024 * numbers + 1  # float64 loses the 1, float32 all of it
    return list(numbers.astype(case.dtype).reshape(shape))


def laid_out(array: Array, order: str) -> Array:
    """Copy an array in memory order "C", "F" or "length first", or as a "slice" with gaps between its rows."""
    if order == "slice":
        return np.concatenate([array, array], axis=2)[:, :, : array.shape[2]]
    if order == "length first":
        return array.transpose(1, 0, 2).copy().transpose(1, 0, 2)
    return np.array(array, order=order)
