"""Test the algorithms on practice ranks, with any number of ranks, any size, dtype and operation."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.interface import (
    ALGORITHMS,
    MPI_ONLY,
    allgather,
    allreduce,
    alltoall,
    broadcast,
    reduce_scatter,
)
from labs_helpers.practice.ranks import practice

OPERATIONS = (None, np.add, np.multiply, np.minimum, np.maximum)
DTYPES = ("float64", "float32", "float16", "int64", "int8", "uint16", "complex64", "longdouble")


def on_messages(function):
    return [name for name in ALGORITHMS[function] if name not in MPI_ONLY]


ranks = st.integers(1, 9)
counts = st.one_of(st.integers(0, 20), st.integers(21, 300))
dtypes = st.sampled_from(DTYPES)
# A dtype and an operation that reduces it: complex numbers have no order.
reductions = st.sampled_from([(d, op) for d in DTYPES for op in OPERATIONS[: 3 if d == "complex64" else None]])
seeds = st.integers(0, 999)
derandomized = settings(max_examples=60)


def values(size, n, dtype, seed):
    """An array for each rank, of integers so small that every order of operations is exact."""
    random = np.random.default_rng(seed)
    kind = np.dtype(dtype).kind
    return [random.integers(0 if kind == "u" else -1, 3, n).astype(dtype) for _ in range(size)]


def reduced(op, inputs):
    with np.errstate(over="ignore"):
        return functools.reduce(op or np.add, inputs)


@pytest.mark.parametrize("algorithm", on_messages("allreduce"))
@pytest.mark.parametrize("validate", [False, True])
@derandomized
@given(size=ranks, n=counts, reduction=reductions, seed=seeds)
def test_allreduce(algorithm, validate, size, n, reduction, seed):
    dtype, op = reduction
    inputs = values(size, n, dtype, seed)
    expected = reduced(op, inputs)

    def one_rank(comm, mine):
        before, recv = mine.copy(), np.full(n + 2, 77, dtype)
        allreduce(comm, mine, recv[1:-1], op, algorithm, validate)
        assert np.array_equal(mine, before) and recv[0] == recv[-1] == 77
        return recv[1:-1]

    ran = practice(one_rank, size, inputs)
    assert all(np.array_equal(result, expected) for result in ran.results)
    assert not ran.unreceived


@pytest.mark.parametrize("algorithm", on_messages("allreduce"))
@pytest.mark.parametrize("size", [2, 3, 4, 8])
def test_allreduce_leaves_the_same_bits_on_all_ranks_where_an_operation_commutes_but_for_them(algorithm, size):
    def one_rank(comm):
        random = np.random.default_rng(comm.Get_rank())
        factors, zeros = random.normal(size=1002).view(complex), random.choice([0.0, -0.0], 501)
        found = np.empty_like(factors), np.empty_like(zeros)
        allreduce(comm, factors, found[0], np.multiply, algorithm)
        allreduce(comm, zeros, found[1], np.maximum, algorithm)
        return b"".join(part.tobytes() for part in found)

    assert len(set(practice(one_rank, size).results)) == 1


@pytest.mark.parametrize("algorithm", on_messages("reduce_scatter"))
@derandomized
@given(size=ranks, n=counts, reduction=reductions, seed=seeds)
def test_reduce_scatter(algorithm, size, n, reduction, seed):
    dtype, op = reduction
    inputs = values(size, n, dtype, seed)
    bounds = chunk_bounds(n, size)
    expected = reduced(op, inputs)

    def one_rank(comm, mine):
        start, stop = bounds[comm.Get_rank()]
        before, recv = mine.copy(), np.full(stop - start + 2, 77, dtype)
        reduce_scatter(comm, mine, recv[1:-1], op, algorithm)
        assert np.array_equal(mine, before) and recv[0] == recv[-1] == 77
        return recv[1:-1]

    results = practice(one_rank, size, inputs).results
    assert np.array_equal(np.concatenate(results), expected)


@pytest.mark.parametrize("algorithm", on_messages("allgather"))
@derandomized
@given(size=ranks, n=counts, dtype=dtypes, seed=seeds)
def test_allgather(algorithm, size, n, dtype, seed):
    inputs = values(size, n, dtype, seed)

    def one_rank(comm, mine):
        recv = np.empty(size * n, dtype)
        allgather(comm, mine, recv, algorithm)
        return recv

    results = practice(one_rank, size, inputs).results
    assert all(np.array_equal(result, np.concatenate(inputs)) for result in results)


@pytest.mark.parametrize("algorithm", on_messages("broadcast"))
@derandomized
@given(size=ranks, n=counts, dtype=dtypes, seed=seeds, root=st.integers(0, 8))
def test_broadcast(algorithm, size, n, dtype, seed, root):
    inputs = values(size, n, dtype, seed)
    root %= size

    def one_rank(comm, mine):
        broadcast(comm, mine, root, algorithm)
        return mine

    results = practice(one_rank, size, [mine.copy() for mine in inputs]).results
    assert all(np.array_equal(result, inputs[root]) for result in results)


@pytest.mark.parametrize("algorithm", on_messages("alltoall"))
@derandomized
@given(size=ranks, n=st.integers(0, 50), dtype=dtypes, seed=seeds)
def test_alltoall(algorithm, size, n, dtype, seed):
    inputs = values(size, n * size, dtype, seed)

    def one_rank(comm, mine):
        recv = np.empty(n * size, dtype)
        alltoall(comm, mine, recv, algorithm)
        return recv.reshape(size, n)

    results = practice(one_rank, size, inputs).results
    for rank, origin in np.ndindex(size, size):
        assert np.array_equal(results[rank][origin], inputs[origin].reshape(size, n)[rank])


def test_an_array_of_more_dimensions_keeps_its_shape():
    def one_rank(comm):
        recv = np.empty((2, 3))
        allreduce(comm, np.full((2, 3), comm.Get_rank() + 1.0), recv)
        return recv

    assert all((result == 6).all() for result in practice(one_rank, 3).results)


def test_nan_stays_nan_in_max():
    def one_rank(comm):
        recv = np.empty(2)
        allreduce(comm, np.array([comm.Get_rank(), np.nan if comm.Get_rank() == 1 else 0.0]), recv, np.maximum)
        return recv

    for result in practice(one_rank, 3).results:
        assert result[0] == 2 and np.isnan(result[1])


@given(n=st.integers(0, 200), parts=st.integers(1, 20))
def test_chunks_cover_the_vector_and_the_first_are_longer(n, parts):
    bounds = chunk_bounds(n, parts)
    lengths = [stop - start for start, stop in bounds]
    assert [i for start, stop in bounds for i in range(start, stop)] == list(range(n))
    assert lengths == [n // parts + 1] * (n % parts) + [n // parts] * (parts - n % parts)


@pytest.mark.parametrize("n, parts, named", [(-1, 2, "n"), (3, 0, "parts")])
def test_chunks_of_nothing_sensible(n, parts, named):
    with pytest.raises(ValueError, match=f"^{named} must"):
        chunk_bounds(n, parts)
