"""The NumPy arrays that ranks returned, against what they should be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from labs_helpers.course.verdict import Candidates, Wrong
from labs_helpers.course.verdict.trees import Comparison, Difference
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import of_world

NOTHING = "the result is not returned; Allgather and Reduce_scatter_block write into recv and return nothing"
FLOAT64 = "np.empty and np.zeros make float64 unless they are told another dtype"
FRACTION = "whole numbers with one that has a point, or divided by /, are float64: leave them whole"
ORDER = (
    "transpose and moveaxis move no elements, np.copy and np.array keep the order that they have in memory, and "
    "order='F' is not C's"
)


class Results:
    """Compares what the ranks return, case by case: values, dtype and order in memory.

    name: of the input. advice: for what no cause fits. several, nothing: the causes of a list of arrays, and of None.
    """

    def __init__(self, student: Callable, name: str, advice: str, several: str, nothing: str = NOTHING):
        self.name, self.several, self.nothing = name, several, nothing
        otherwise = (lambda difference: of_world(student), _moved)
        self.values = Comparison("rank {0}'s result", otherwise=otherwise, advice=advice)
        self.dtypes: set[np.dtype] = set()  # of results that were right

    def compare(
        self,
        case: str,
        found: list,
        right: Sequence[np.ndarray],
        causes: Callable[[], Candidates],
        given: Mapping[str, np.ndarray] | None = None,
        fortran: bool = False,
    ) -> None:
        """Raises Wrong unless each rank's array is the right one: its shape, values and dtype, in C order.

        causes(): their answers are an array for each rank. given: whose → input, where a value tells its place.
        fortran: the other order is accepted.
        """
        self.compare_values(case, found, right, causes, given)
        self.compare_form(case, found, right, fortran)

    def compare_values(self, case, found, right, causes, given=None) -> None:
        for rank, array in enumerate(found):
            if not isinstance(array, np.ndarray):
                kind, cause = f"a {type(array).__name__}", ""
                if array is None:
                    kind, cause = "None", self.nothing
                elif isinstance(array, list | tuple) and all(isinstance(one, np.ndarray) for one in array):
                    kind, cause = f"{kind} of {len(array)} arrays", self.several
                raise Wrong(case, f"rank {rank} returned {kind}; an array is asked for", cause=cause)
        self.values.expect(case, list(found), list(right), causes, lambda value: self._place(value, given or {}))

    def compare_form(self, case, found, right, fortran=False) -> None:
        for rank, (array, one) in enumerate(zip(found, right, strict=True)):
            if array.dtype != one.dtype:
                of = f"rank {rank}'s result is {array.dtype}, expected {one.dtype}, as {self.name} is"
                fixed = f"{array.dtype} is asked for somewhere; {self.name}.dtype is right whatever that is"
                if array.dtype == np.float64 and one.dtype.kind in "iu" and np.dtype(np.float32) in self.dtypes:
                    raise Wrong(case, of, cause=FRACTION)
                raise Wrong(case, of, cause=(FLOAT64, fixed) if array.dtype == np.float64 else fixed)
            if not (array.flags.c_contiguous or fortran and array.flags.f_contiguous):
                found_in = f"rank {rank}'s result is not contiguous: shape {array.shape}, strides {array.strides}"
                raise Wrong(case, found_in, cause=ORDER, advice="np.ascontiguousarray makes it so")
            self.dtypes.add(one.dtype)

    def _place(self, value, given: Mapping[str, np.ndarray]) -> str:
        """', x[0, 1, 2] of rank 3' for a value that is in one place of what the ranks were given."""
        for whose, array in given.items():
            at = np.argwhere(array == value)
            if len(at):
                return f", {self.name}{list(map(int, at[0]))} of {whose}"
        return ""


def _moved(difference: Difference) -> str:
    """The cause where the elements are the right ones: their shape, or their order."""
    pairs = difference.pairs
    if any(array.size != one.size for array, one in pairs):
        return ""
    if all((array.ravel() == one.ravel()).all() for array, one in pairs):
        return "the elements are right, and in the right order: only reshape is missing"
    if all((np.sort(array, axis=None) == np.sort(one, axis=None)).all() for array, one in pairs):
        return "each rank has the right elements, in another order: follow the axes from line to line"
    return ""
