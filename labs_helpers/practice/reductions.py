"""What practice ranks reduce with: mpi4py's operations and NumPy's, on arrays and on Python's objects."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

import numpy as np

from labs_helpers.launch.flavour import find_mpi

IN_PLACE = object()
_KNOWN = {  # name → (of arrays, of Python's objects)
    "SUM": (np.add, operator.add),
    "PROD": (np.multiply, operator.mul),
    "MIN": (np.minimum, min),
    "MAX": (np.maximum, max),
}


def is_in_place(buffer) -> bool:
    """Whether it is IN_PLACE, of this module or of mpi4py, which takes None for it as well."""
    return buffer is None or buffer is IN_PLACE or (find_mpi() is not None and buffer is find_mpi().IN_PLACE)


def operation_name(op, dtype: np.dtype | None = None) -> str:
    """'SUM' for None, for MPI.SUM and for np.add.

    Raises ValueError for what practice ranks cannot compute, and where MPI has no such operation on the dtype.
    """
    kinds = () if find_mpi() is None else (find_mpi().Op,)
    known = (
        name
        for name, (ufunc, _) in _KNOWN.items()
        if op is ufunc or (isinstance(op, kinds) and op == getattr(find_mpi(), name))
    )
    name = "SUM" if op is None else next(known, "")
    if not name:
        if not callable(op) or isinstance(op, kinds):
            raise ValueError(f"practice ranks reduce with {', '.join(_KNOWN)}, not {op!r}")
        return getattr(op, "__name__", repr(op))
    if dtype is not None and (dtype.kind == "b" or (dtype.kind == "c" and name in ("MIN", "MAX"))):
        raise ValueError(f"MPI has no {name} of {dtype}")
    return name


def reduced(brought: list, op, objects: bool = False):
    """brought[0] ∘ brought[1] ∘ …, in this order."""
    name = operation_name(op)
    function: Callable = _KNOWN[name][objects] if name in _KNOWN else op
    return reduce(function, brought)
