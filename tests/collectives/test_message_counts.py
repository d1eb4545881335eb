"""Compare the bytes and messages that each rank sends with the formulas in the algorithms' docstrings."""

import math

import numpy as np
import pytest

from labs_helpers.collectives.agreement import RECORD_BYTES
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.cost_model import _MODELS, terms
from labs_helpers.collectives.counting import CountingComm
from labs_helpers.collectives.interface import allgather, allreduce, alltoall, broadcast, reduce_scatter
from labs_helpers.practice.ranks import practice

SIZES = (1, 2, 3, 4, 5, 7, 8)
COUNTS = (0, 1, 7, 1000)


def sent(call, size, n):
    """(messages, bytes) of each rank; call(comm, n elements of one byte)."""

    def one_rank(comm):
        counting = CountingComm(comm)
        call(counting, np.zeros(n, np.uint8))
        return counting.messages_sent, counting.bytes_sent

    ran = practice(one_rank, size)
    assert ran.results == list(zip(ran.messages_sent, ran.bytes_sent, strict=True))
    return ran.results


def reduce_all(algorithm, validate=False):
    return lambda comm, data: allreduce(comm, data, np.empty_like(data), None, algorithm, validate)


def scatter(algorithm):
    def call(comm, data):
        start, stop = chunk_bounds(data.size, comm.Get_size())[comm.Get_rank()]
        reduce_scatter(comm, data, np.empty(stop - start, np.uint8), None, algorithm, validate=False)

    return call


def lengths(n, size):
    return [stop - start for start, stop in chunk_bounds(n, size)]


def roles(size):
    """'left' its data with a neighbor, 'serves' one, or 'works' for itself alone."""
    extra = size - 2 ** int(math.log2(size))
    return ["works" if rank >= 2 * extra else "serves" if rank % 2 else "left" for rank in range(size)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n", COUNTS)
class TestExactly:
    def test_naive(self, size, n):
        expected = [(size - 1, (size - 1) * n)] + [(1, n)] * (size - 1)
        assert sent(reduce_all("naive"), size, n) == expected

    def test_ring(self, size, n):
        chunks = lengths(n, size)
        expected = [(2 * (size - 1), 2 * n - chunks[rank] - chunks[(rank + 1) % size]) for rank in range(size)]
        assert sent(reduce_all("ring"), size, n) == expected
        if n % size == 0:
            assert all(nbytes == 2 * (size - 1) * n // size for _, nbytes in expected)

    def test_recursive_doubling(self, size, n):
        steps = int(math.log2(size))
        messages = {"left": 1, "serves": steps + 1, "works": steps}
        assert sent(reduce_all("recursive_doubling"), size, n) == [
            (messages[role], messages[role] * n) for role in roles(size)
        ]

    def test_rabenseifner(self, size, n):
        steps = int(math.log2(size))
        power = 2**steps
        ran = sent(reduce_all("rabenseifner"), size, n)
        messages = {"left": 1, "serves": 2 * steps + 1, "works": 2 * steps}
        assert [count for count, _ in ran] == [messages[role] for role in roles(size)]
        if n % power == 0:
            nbytes = {"left": n, "serves": 2 * n - 2 * n // power + n, "works": 2 * n - 2 * n // power}
            assert [count for _, count in ran] == [nbytes[role] for role in roles(size)]

    def test_ring_reduce_scatter(self, size, n):
        assert sent(scatter("ring"), size, n) == [(size - 1, n - own) for own in lengths(n, size)]

    def test_recursive_halving(self, size, n):
        steps = int(math.log2(size))
        messages = {"left": 1, "serves": steps + 1, "works": steps}
        expected = [
            (messages[role], n if role == "left" else n - own)
            for role, own in zip(roles(size), lengths(n, size), strict=True)
        ]
        assert sent(scatter("recursive_halving"), size, n) == expected

    def test_ring_allgather(self, size, n):
        def call(comm, data):
            allgather(comm, data, np.empty(n * size, np.uint8), "ring", validate=False)

        assert sent(call, size, n) == [(size - 1, (size - 1) * n)] * size

    def test_binomial_broadcast(self, size, n):
        ran = sent(lambda comm, data: broadcast(comm, data, size - 1, "binomial", validate=False), size, n)
        assert ran[size - 1] == (math.ceil(math.log2(size)), math.ceil(math.log2(size)) * n)
        assert (sum(messages for messages, _ in ran), sum(nbytes for _, nbytes in ran)) == (size - 1, (size - 1) * n)

    def test_pairwise_alltoall(self, size, n):
        def call(comm, data):
            blocks = np.tile(data, size)
            alltoall(comm, blocks, np.empty_like(blocks), "pairwise", validate=False)

        assert sent(call, size, n) == [(size - 1, (size - 1) * n)] * size

    def test_validation_is_one_small_exchange(self, size, n):
        plain, checked = sent(reduce_all("ring"), size, n), sent(reduce_all("ring", validate=True), size, n)
        extra = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(plain, checked, strict=True)]
        assert extra == [(math.ceil(math.log2(size)), (size - 1) * RECORD_BYTES)] * size


def call_of(function, algorithm):
    """call(comm, data) for `practice`, whatever the function's arguments."""

    def call(comm, data):
        start, stop = chunk_bounds(data.size, comm.Get_size())[comm.Get_rank()]
        if function == "allgather":
            allgather(comm, data[start:stop], data.copy(), algorithm, validate=False)
        elif function == "alltoall":
            alltoall(comm, data, data.copy(), algorithm, validate=False)
        elif function == "broadcast":
            broadcast(comm, data, 0, algorithm, validate=False)
        else:
            {"allreduce": reduce_all, "reduce_scatter": scatter}[function](algorithm)(comm, data)

    return call


@pytest.mark.parametrize("size", [2, 4, 5, 8])
@pytest.mark.parametrize(
    "function, algorithm", [pair for pair in _MODELS if pair[1] not in ("shared_memory", "hierarchical")]
)
def test_the_cost_is_that_of_the_messages_one_after_the_other(function, algorithm, size):
    """Messages: the steps of the longest chain. Bytes along it: no fewer than the busiest rank sends or receives, and
    no more than it does of both."""
    n, model = 40 * size, terms(function, algorithm, size)
    ran = practice(lambda comm: call_of(function, algorithm)(comm, np.zeros(n, np.uint8)), size)
    assert ran.steps == model.messages
    both = [out + into for out, into in zip(ran.bytes_sent, ran.bytes_received, strict=True)]
    assert max(*ran.bytes_sent, *ran.bytes_received) <= round(model.sent * n) <= max(both)
