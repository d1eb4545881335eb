"""Check buffers: they must be C-contiguous NumPy arrays of numbers or truth values, of the right size and dtype.

Each function returns flat views (n,) of the buffers, or raises TypeError or ValueError naming the argument. op: reduces
the buffers, and must support their dtype. types: the dtypes that it supports.
"""

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.operations import INTEGERS, NUMBERS, REALS, TRUTH, operation_name, types_of
from labs_helpers.launch.flavour import find_mpi

ANY = NUMBERS | TRUTH
_KINDS = {"integers": INTEGERS, "floats": REALS - INTEGERS, "complex numbers": NUMBERS - REALS, "bool": TRUTH}


def flat(name: str, array, written: bool = False) -> np.ndarray:
    """Return the array as (n,), without a copy."""
    if isinstance(array, np.ndarray):
        flags = array.flags
        if array.dtype in ANY and flags.c_contiguous and (not written or flags.writeable):
            return array if array.ndim == 1 else array.reshape(-1)
    raise _refusal(name, array)


def _refusal(name: str, array) -> Exception:
    if not isinstance(array, np.ndarray):
        return TypeError(f"{name} must be a NumPy array, not {type(array).__name__}")
    if array.dtype not in ANY:
        return TypeError(f"{name} must hold numbers in this machine's byte order, but its dtype is {array.dtype!r}")
    if not array.flags.c_contiguous:
        return ValueError(f"{name} must be contiguous, but has shape {array.shape} and strides {array.strides}")
    return ValueError(f"{name} is written to, but is read-only")


def is_in_place(send) -> bool:
    if isinstance(send, np.ndarray):
        return False
    MPI = find_mpi()
    return MPI is not None and send is MPI.IN_PLACE


def allreduce_buffers(comm, op, send, recv):
    """Return the views of an all-reduce; in place, both are the same object."""
    types = NUMBERS if op is None else types_of(op)
    if _are_usual(send, recv, types):
        return send, recv
    target = flat("recv", recv, written=True)
    source = target if is_in_place(send) else flat("send", send)
    if source is not target:
        _expect(target, source, source.size, "as many as send")
    _expect_reducible(target, op, types)
    return source, target


def reduce_scatter_buffers(comm, op, send, recv):
    source, target = flat("send", send), flat("recv", recv, written=True)
    _expect_reducible(source, op, types_of(op))
    start, stop = chunk_bounds(source.size, comm.Get_size())[comm.Get_rank()]
    _expect(target, source, stop - start, f"rank {comm.Get_rank()}'s chunk of {source.size}")
    return source, target


def allgather_buffers(comm, op, send, recv):
    source, target = flat("send", send), flat("recv", recv, written=True)
    size = comm.Get_size()
    _expect(target, source, size * source.size, f"{size} ranks × {source.size} of send")
    return source, target


def alltoall_buffers(comm, op, send, recv):
    usual = _are_usual(send, recv, ANY)
    source, target = (send, recv) if usual else (flat("send", send), flat("recv", recv, written=True))
    if source.size % comm.Get_size():
        raise ValueError(f"send has {source.size} elements, which {comm.Get_size()} ranks do not divide")
    if not usual:
        _expect(target, source, source.size, "as many as send")
    return source, target


def no_overlap(source, target, in_place_is_known: bool) -> None:
    """Raise ValueError if two flat buffers share memory."""
    if np.may_share_memory(source, target):  # exact for contiguous arrays
        way = "to reduce in place, pass send=MPI.IN_PLACE" if in_place_is_known else "receive into an array of its own"
        raise ValueError(f"recv overlaps send in memory; {way}")


def _are_usual(send, recv, types) -> bool:
    """Return True if both buffers are flat and match, so that nothing else needs checking. One expression, because a
    short vector takes 5 µs in all."""
    return (
        isinstance(send, np.ndarray) and isinstance(recv, np.ndarray)
        and send.ndim == 1 and send.shape == recv.shape
        and send.dtype is recv.dtype and send.dtype in types
        and send.flags.c_contiguous and recv.flags.carray
    )  # fmt: skip


def _expect_reducible(array, op, types) -> None:
    if array.dtype not in types:
        known = " and ".join(kind for kind, group in _KINDS.items() if group <= types) or "no such arrays"
        raise TypeError(f"op {operation_name(op)} does not reduce {array.dtype}; by MPI's table it reduces {known}")


def _expect(target, source, count: int, why: str) -> None:
    if target.dtype != source.dtype:
        raise TypeError(f"recv has dtype {target.dtype}, but send has {source.dtype}")
    if target.size != count:
        raise ValueError(f"recv has {target.size} elements and should have {count} ({why})")
