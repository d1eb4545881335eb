"""Test lab 06's references on practice ranks, for any size, length, dtype and operation."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.collectives import chunk_bounds
from labs_helpers.collectives.lab06 import exercises
from labs_helpers.practice import practice
from tests.collectives.lab06.exercises.ex8_recursive_halving import recursive_halving

SIZES = st.integers(1, 8)
LENGTHS = st.integers(0, 40)
DTYPES = st.sampled_from([np.float64, np.float32, np.int32, np.uint8])
OPS = st.sampled_from([np.add, np.maximum, np.minimum, np.multiply])
few = settings(max_examples=40)


def vectors(size, n, dtype):
    return list(np.random.default_rng(size * 100 + n).integers(0, 4, (size, n)).astype(dtype))


@few
@given(SIZES, LENGTHS, DTYPES, OPS, st.sampled_from([exercises.naive_allreduce, exercises.ring_allreduce]))
def test_all_reduce(size, n, dtype, op, allreduce):
    sends, recvs = vectors(size, n, dtype), vectors(size, n, dtype)
    practice(lambda comm: allreduce(comm, sends[comm.rank], recvs[comm.rank], op), size)
    for recv in recvs:
        assert np.array_equal(recv, op.reduce(sends, dtype=dtype))


@few
@given(SIZES, LENGTHS, DTYPES, OPS)
def test_all_reduce_in_shared_memory(size, n, dtype, op):
    sends, recvs, shared = vectors(size, n, dtype), vectors(size, n, dtype), np.empty((size, n), dtype)
    practice(lambda comm: exercises.shared_memory_allreduce(comm, shared, sends[comm.rank], recvs[comm.rank], op), size)
    for recv in recvs:
        assert np.array_equal(recv, op.reduce(sends, dtype=dtype))


@few
@given(st.integers(0, 3), SIZES, LENGTHS, DTYPES, OPS)
def test_reduce_scatter(power, any_size, n, dtype, op):
    for reduce_scatter, size in ((exercises.ring_reduce_scatter, any_size), (recursive_halving, 2**power)):
        data = vectors(size, n, dtype)
        expected = op.reduce(data, dtype=dtype)
        practice(lambda comm, call=reduce_scatter, data=data: call(comm, data[comm.rank], op), size)
        for vector, (start, stop) in zip(data, chunk_bounds(n, size), strict=True):
            assert np.array_equal(vector[start:stop], expected[start:stop])


@few
@given(SIZES, st.integers(0, 6), DTYPES)
def test_all_to_all(size, length, dtype):
    sends, recvs = vectors(size, size * length, dtype), vectors(size, size * length, dtype)
    practice(lambda comm: exercises.pairwise_alltoall(comm, sends[comm.rank], recvs[comm.rank]), size)
    expected = np.reshape(sends, (size, size, length)).swapaxes(0, 1).reshape(size, -1)
    assert np.array_equal(recvs, expected)


@few
@given(SIZES)
def test_ring_shift(size):
    sends, recvs = vectors(size, 5, np.float64), vectors(size, 5, np.float64)
    practice(lambda comm: exercises.ring_shift(comm, sends[comm.rank], recvs[comm.rank]), size)
    assert all(np.array_equal(recvs[rank], sends[rank - 1]) for rank in range(size))
