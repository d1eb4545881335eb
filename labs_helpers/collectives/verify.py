"""Compare every algorithm with the MPI library's own on real ranks: all functions, sizes, dtypes and operations.

The values are small integers, so any order of operations gives exactly the same numbers.
"""

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.interface import ALGORITHMS, allgather, allreduce, alltoall, broadcast, reduce_scatter
from labs_helpers.collectives.operations import is_commutative, operation_name
from labs_helpers.launch.flavour import find_mpi

SIZES = (0, 1, 7, 1000, 100_003)
DTYPES = ("float64", "float32", "int32", "uint8", "complex128")
NOT_FOR_ORDER = {"ring", "recursive_halving", "hierarchical"}  # a non-commutative op is tried on the others
_GUARD = 99  # stands where nothing may be written, and in recv before the call


def verify(
    comm,
    functions: Sequence[str] = tuple(ALGORITHMS),
    sizes: Sequence[int] = SIZES,
    dtypes: Sequence[str] = DTYPES,
    validate: bool = False,
    left_out: Sequence[str] = (),
) -> tuple[int, str | None]:
    """Return (number of cases, the first that differs from native on any rank, or None), the same on every rank.

    Stops after the first combination of function, size and dtype that fails. Collective. sizes: elements that a rank
    sends; for alltoall, elements per block. left_out: algorithms not to try.
    """
    count = 0
    for function, size, dtype in itertools.product(functions, sizes, dtypes):
        cases = list(_CASES[function](comm, size, np.dtype(dtype), validate, left_out))
        count += len(cases)
        agrees = np.array([good for _, good in cases])
        wrong = np.argwhere(~np.stack(comm.allgather(agrees)))  # rows (rank, case)
        if wrong.size:
            first = wrong[:, 1].min()
            ranks = [int(rank) for rank, case in wrong if case == first]
            return count, f"{function}, {size} elements of {dtype}, {cases[first][0]}: wrong on ranks {ranks}"
    return count, None


def _allreduce_cases(comm, n: int, dtype, validate: bool, left_out) -> Iterator[tuple[str, bool]]:
    MPI = find_mpi()
    for op, name in _operations(dtype):
        send, expected = _values(comm, n, dtype), np.empty(n, dtype)
        comm.Allreduce(send, expected, op)
        for algorithm in _algorithms("allreduce", op, left_out):
            before = send.copy()
            for again in ("", " again")[: 1 + validate]:  # the second one is remembered
                recv, whole = _guarded(n, dtype)
                allreduce(comm, send, recv, op, algorithm, validate)
                yield f"{name}, {algorithm}{again}", _good(recv, expected, whole) and np.array_equal(send, before)
                recv[...] = send
                allreduce(comm, MPI.IN_PLACE, recv, op, algorithm, validate)
                yield f"{name}, {algorithm}, in place{again}", _good(recv, expected, whole)
        if not op.is_predefined:
            op.Free()


def _reduce_scatter_cases(comm, n: int, dtype, validate: bool, left_out) -> Iterator[tuple[str, bool]]:
    counts = [stop - start for start, stop in chunk_bounds(n, comm.Get_size())]
    mine = counts[comm.Get_rank()]
    for op, name in _operations(dtype):
        send, expected = _values(comm, n, dtype), np.empty(mine, dtype)
        comm.Reduce_scatter(send, expected, counts, op)
        for algorithm in _algorithms("reduce_scatter", op, left_out) if is_commutative(op) else ["native"]:
            before, recv, whole = send.copy(), *_guarded(mine, dtype)
            reduce_scatter(comm, send, recv, op, algorithm, validate)
            yield f"{name}, {algorithm}", _good(recv, expected, whole) and np.array_equal(send, before)
        if not op.is_predefined:
            op.Free()


def _allgather_cases(comm, n: int, dtype, validate: bool, left_out) -> Iterator[tuple[str, bool]]:
    size = comm.Get_size()
    send, expected = _values(comm, n, dtype), np.empty(n * size, dtype)
    comm.Allgather(send, expected)
    for algorithm in _algorithms("allgather", None, left_out):
        before, recv, whole = send.copy(), *_guarded(n * size, dtype)
        allgather(comm, send, recv, algorithm, validate)
        yield algorithm, _good(recv, expected, whole) and np.array_equal(send, before)


def _broadcast_cases(comm, n: int, dtype, validate: bool, left_out) -> Iterator[tuple[str, bool]]:
    roots = sorted({0, comm.Get_size() // 2, comm.Get_size() - 1})
    for root, algorithm in itertools.product(roots, _algorithms("broadcast", None, left_out)):
        recv, whole = _guarded(n, dtype)
        recv[...] = _values(comm, n, dtype)
        expected = recv.copy()
        comm.Bcast(expected, root)
        broadcast(comm, recv, root, algorithm, validate)
        yield f"root {root}, {algorithm}", _good(recv, expected, whole)


def _alltoall_cases(comm, n: int, dtype, validate: bool, left_out) -> Iterator[tuple[str, bool]]:
    n *= comm.Get_size()
    send, expected = _values(comm, n, dtype), np.empty(n, dtype)
    comm.Alltoall(send, expected)
    for algorithm in _algorithms("alltoall", None, left_out):
        before, recv, whole = send.copy(), *_guarded(n, dtype)
        alltoall(comm, send, recv, algorithm, validate)
        yield algorithm, _good(recv, expected, whole) and np.array_equal(send, before)


_CASES = {
    "allreduce": _allreduce_cases,
    "reduce_scatter": _reduce_scatter_cases,
    "allgather": _allgather_cases,
    "broadcast": _broadcast_cases,
    "alltoall": _alltoall_cases,
}


def _algorithms(function: str, op, left_out) -> list[str]:
    excluded = set(left_out) if is_commutative(op) else {*left_out, *NOT_FOR_ORDER}
    return [name for name in ALGORITHMS[function] if name not in excluded]


def _operations(dtype) -> Iterator[tuple[object, str]]:
    """Return predefined operations and, for complex numbers, two created ones (the caller frees these)."""
    MPI = find_mpi()
    yield from ((op, operation_name(op)) for op in (MPI.SUM, MPI.PROD))
    if dtype.kind != "c":
        yield from ((op, operation_name(op)) for op in (MPI.MIN, MPI.MAX))
    elif dtype.itemsize == 16:
        yield MPI.Op.Create(_sum_and_sum, commute=True), "user-defined"
        yield MPI.Op.Create(_compose, commute=False), "user-defined, not commutative"


def _sum_and_sum(a, b, datatype) -> None:
    b = np.frombuffer(b, complex)
    b += np.frombuffer(a, complex)


def _compose(a, b, datatype) -> None:
    """Compose maps: p + iq stands for the map x → px + q, and a ∘ b is b followed by a."""
    a, b = np.frombuffer(a, complex), np.frombuffer(b, complex)
    b[...] = a.real * b.real + 1j * (a.real * b.imag + a.imag)


def _values(comm, n: int, dtype) -> np.ndarray:
    """Return small integers, different on each rank and for each size; p = ±1 for maps, which keeps them small."""
    random = np.random.default_rng([comm.Get_rank(), n])
    if dtype.kind == "c":
        return (random.choice([-1, 1], n) + 1j * random.integers(-3, 4, n)).astype(dtype)
    return random.integers(0 if dtype.kind == "u" else -2, 3, n).astype(dtype)


def _guarded(n: int, dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return a buffer of n elements, and the larger array in whose middle it lies."""
    whole = np.full(n + 8, _GUARD, dtype)
    return whole[4 : n + 4], whole


def _good(recv, expected, whole) -> bool:
    return np.array_equal(recv, expected) and bool((whole[:4] == _GUARD).all() and (whole[-4:] == _GUARD).all())
