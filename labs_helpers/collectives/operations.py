"""The local half of a reduction: a ∘ b on two buffers of one rank.

An operation `op` is MPI.SUM, PROD, MIN or MAX, another MPI.Op (created by MPI.Op.Create), or the NumPy function of the
four; None is the sum. So practice ranks need no MPI. MIN and MAX follow NumPy: a NaN stays NaN.
"""

import numpy as np

from labs_helpers.launch.flavour import find_mpi

INTEGERS = frozenset(map(np.dtype, np.typecodes["AllInteger"]))  # of this machine's byte order, as all of these
REALS = INTEGERS | frozenset(map(np.dtype, "efdg"))
NUMBERS = REALS | frozenset(map(np.dtype, "FDG"))
TRUTH = frozenset([np.dtype(bool)])
# What each predefined operation reduces: the table in the MPI standard, §6.9.2 of version 4.1. The others reduce pairs
# (MINLOC, MAXLOC), or nothing outside of windows (REPLACE, NO_OP).
_REDUCES = {"SUM": NUMBERS, "PROD": NUMBERS, "MIN": REALS, "MAX": REALS}
_REDUCES |= dict.fromkeys(("LAND", "LOR", "LXOR"), INTEGERS | TRUTH) | dict.fromkeys(("BAND", "BOR", "BXOR"), INTEGERS)
PIECE = 8192  # elements per block: `out`, which is read and written for every row, stays in the L1 or L2 cache
_NAMES = {np.add: "SUM", np.multiply: "PROD", np.minimum: "MIN", np.maximum: "MAX"}
# Filled when MPI is loaded. Pairs, because an MPI.Op cannot be the key of a dict:
_UFUNCS = []  # (MPI.Op, ufunc)
_TYPES = []  # (predefined operation, the dtypes that it reduces)


def find_ufunc(op):
    """Return the NumPy function that computes `op`, or None if only MPI can.

    Raises TypeError or ValueError, naming `op`, if it is no operation or has been freed.
    """
    if op is None:
        return np.add
    for known, ufunc in _UFUNCS:
        if known is op:
            return ufunc
    if isinstance(op, np.ufunc) and op in _NAMES:
        return op
    MPI = find_mpi()
    if MPI is None or not isinstance(op, MPI.Op):
        raise TypeError(f"op must be an MPI.Op such as MPI.SUM, not {op!r}")
    if not op:
        raise ValueError("op has been freed (it is MPI.OP_NULL)")
    if not _UFUNCS:
        _UFUNCS.extend((getattr(MPI, name), ufunc) for ufunc, name in _NAMES.items())
    return next((ufunc for known, ufunc in _UFUNCS if known == op), None)


def is_commutative(op) -> bool:
    """Return True if a ∘ b = b ∘ a, as the operation's author declared."""
    return find_ufunc(op) is not None or op.is_commutative


def types_of(op) -> frozenset:
    """Return the dtypes that `op` reduces. Raises as `find_ufunc`."""
    if op is None:
        return NUMBERS
    for known, types in _TYPES:
        if known is op:
            return types
    name = operation_name(op)
    if name == "user-defined":
        return NUMBERS | TRUTH
    types = _REDUCES.get(name, frozenset())
    _TYPES.append((op, types))
    return types


def operation_name(op) -> str:
    """Return 'SUM' for MPI.SUM; operations created by a program have no names and are all 'user-defined'."""
    ufunc = find_ufunc(op)
    if ufunc is not None:
        return _NAMES[ufunc]
    if not op.is_predefined:
        return "user-defined"
    names = ("LAND", "BAND", "LOR", "BOR", "LXOR", "BXOR", "MINLOC", "MAXLOC", "REPLACE", "NO_OP")
    return next((name for name in names if getattr(find_mpi(), name) == op), "predefined")


def reduce_local(op, a, inout) -> None:
    """Compute inout ← a ∘ inout, element by element; a and inout: contiguous arrays of one size and dtype.

    The order of the two is that of MPI_Reduce_local. Raises ValueError if the operation does not support the dtype.
    """
    ufunc = find_ufunc(op)
    if ufunc is not None:
        ufunc(a, inout, out=inout)
        return
    try:
        op.Reduce_local(a, inout)
    except find_mpi().Exception as error:
        raise ValueError(f"op ({operation_name(op)}) does not work on {inout.dtype}: {error}") from error


def combine(op, theirs, mine, theirs_first: bool) -> None:
    """Compute mine ← theirs ∘ mine, or mine ∘ theirs if their ranks come after mine; may overwrite theirs.

    Both partners of an exchange keep this order: bit for bit, a product of complex numbers does not commute, nor does
    the maximum of 0 and −0.
    """
    exact = find_ufunc(op) is np.add or mine.dtype.kind in "iub"
    if theirs_first or (exact and is_commutative(op)):
        reduce_local(op, theirs, mine)
    else:
        reduce_local(op, mine, theirs)
        mine[...] = theirs


def reduce_two(op, first, second, out) -> None:
    """Compute out ← first ∘ second; out may be one of them."""
    ufunc = find_ufunc(op)
    if ufunc is not None:
        ufunc(first, second, out)
        return
    result = second.copy()
    reduce_local(op, first, result)
    out[...] = result


def reduce_rows(op, rows, out) -> None:
    """Compute out ← rows[0] ∘ rows[1] ∘ …, in this order. rows: (ranks, n), each row contiguous; out: (n,)."""
    ufunc = find_ufunc(op)
    if ufunc is None:
        out[...] = rows[-1]
        for row in rows[-2::-1]:
            reduce_local(op, row, out)
    elif out.size <= PIECE:
        ufunc.reduce(rows, 0, out.dtype, out)
    else:
        for start in range(0, out.size, PIECE):
            ufunc.reduce(rows[:, start : start + PIECE], 0, out.dtype, out[start : start + PIECE])
