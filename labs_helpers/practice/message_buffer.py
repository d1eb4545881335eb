"""The elements of a NumPy array that a message is sent from or received into, as mpi4py interprets it."""

from __future__ import annotations

import numpy as np


def elements(buffer, writeable: bool = False) -> np.ndarray:
    """Return the elements of a buffer as a one-dimensional view, in memory order.

    buffer: a contiguous NumPy array of numbers, of any shape, or a list [array, MPI type] or [array, count, MPI type].

    Raises TypeError (not an array of numbers, a type of another size), BufferError (not contiguous; read-only although
    `writeable` is set) or ValueError (a count that the array does not hold).
    """
    array, count, kind = buffer, None, None
    if isinstance(buffer, list | tuple):
        if not 1 <= len(buffer) <= 3:
            raise TypeError(f"a buffer is an array, [array, MPI type] or [array, count, MPI type], not {buffer!r}")
        array, rest = buffer[0], list(buffer[1:])
        kind = rest.pop() if rest and not isinstance(rest[-1], int | np.integer) else None
        count = rest.pop() if rest else None
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"a message is sent from and received into a NumPy array, not {type(array).__name__}; "
            "a number travels as np.array([number])"
        )
    if array.dtype.kind not in "biufc":
        raise TypeError(f"a message holds numbers, not elements of dtype {array.dtype}")
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise BufferError(f"the buffer is not contiguous: shape {array.shape}, strides {array.strides}; send a copy")
    if writeable and not array.flags.writeable:
        raise BufferError("the buffer to receive into is read-only")
    if kind is not None and not isinstance(kind, str) and kind.Get_size() != array.itemsize:
        raise TypeError(
            f"the MPI type has {kind.Get_size()} bytes, the array's elements ({array.dtype}) have {array.itemsize}"
        )
    flat = array.ravel(order="K")
    if count is None:
        return flat
    if not 0 <= count <= flat.size:
        raise ValueError(f"count {count} does not fit the buffer of {flat.size} elements")
    return flat[:count]
