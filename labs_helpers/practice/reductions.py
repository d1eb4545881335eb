"""The reductions of practice ranks: mpi4py's and NumPy's operations, on arrays and on Python objects."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce

import numpy as np

from labs_helpers.launch.flavour import find_mpi

IN_PLACE = object()
_KNOWN = {  # name → (for arrays, for Python objects)
    "SUM": (np.add, operator.add),
    "PROD": (np.multiply, operator.mul),
    "MIN": (np.minimum, min),
    "MAX": (np.maximum, max),
}


def is_in_place(buffer) -> bool:
    """Return True for IN_PLACE, of this module or of mpi4py, which also accepts None for it."""
    return buffer is None or buffer is IN_PLACE or (find_mpi() is not None and buffer is find_mpi().IN_PLACE)


def operation_name(op, dtype: np.dtype | None = None) -> str:
    """Return 'SUM' for None, for MPI.SUM and for np.add.

    Raises ValueError for an operation that practice ranks cannot compute, or that MPI does not define for the dtype.
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
    """Return brought[0] ∘ brought[1] ∘ …, in this order."""
    name = operation_name(op)
    function: Callable = _KNOWN[name][objects] if name in _KNOWN else op
    return reduce(function, brought)
