"""Test that every bad argument is named, and that every rank reports a difference between ranks instead of hanging."""

import numpy as np
import pytest

from labs_helpers.collectives.interface import ALGORITHMS, allgather, allreduce, alltoall, broadcast, reduce_scatter
from labs_helpers.practice.ranks import practice


def told(call, size=4, **options):
    """What each rank's call raised: 'TypeError: …'."""

    def one_rank(comm):
        try:
            call(comm, comm.Get_rank())
        except (TypeError, ValueError) as error:
            return f"{type(error).__name__}: {error}"
        return "nothing"

    return practice(one_rank, size, **options).results


A, B = np.zeros(8), np.zeros(8)
READ_ONLY = np.zeros(8)
READ_ONLY.flags.writeable = False
SWAPPED = np.zeros(8, np.dtype("f8").newbyteorder())


@pytest.mark.parametrize("validate", [True, False])
@pytest.mark.parametrize("call, expected", [
    (lambda comm, **v: allreduce(A, comm, B, **v), "TypeError: comm must be a communicator, not a ndarray"),
    (lambda comm, **v: allreduce(comm, [1.0], B, **v), "TypeError: send must be a NumPy array, not list"),
    (lambda comm, **v: allreduce(comm, A, None, **v), "TypeError: recv must be a NumPy array, not NoneType"),
    (lambda comm, **v: allreduce(comm, np.zeros(16)[::2], B, **v), "ValueError: send must be contiguous"),
    (lambda comm, **v: allreduce(comm, A, np.zeros((8, 2))[:, 0], **v), "ValueError: recv must be contiguous"),
    (lambda comm, **v: allreduce(comm, A, READ_ONLY, **v), "ValueError: recv is written to, but is read-only"),
    (lambda comm, **v: allreduce(comm, A, B[:7], **v), "ValueError: recv has 7 elements and should have 8"),
    (lambda comm, **v: allreduce(comm, A, np.zeros(8, "f4"), **v), "TypeError: recv has dtype float32, but send has"),
    (lambda comm, **v: allreduce(comm, A.astype("O"), B, **v), "TypeError: send must hold numbers"),
    (lambda comm, **v: allreduce(comm, A > 0, B > 0, **v), "TypeError: op SUM does not reduce bool; by MPI's table it"),
    (lambda comm, **v: reduce_scatter(comm, A > 0, B[:2] > 0, **v), "TypeError: op SUM does not reduce bool"),
    (lambda comm, **v: allreduce(comm, A + 0j, B + 0j, np.maximum, **v), "TypeError: op MAX does not reduce complex"),
    (lambda comm, **v: allreduce(comm, A, A.astype("U3"), **v), "TypeError: recv must hold numbers"),
    (lambda comm, **v: allreduce(comm, SWAPPED, B, **v), "TypeError: send must hold numbers in this machine's byte"),
    (lambda comm, **v: allreduce(comm, A, B, "sum", **v), "TypeError: op must be an MPI.Op such as MPI.SUM, not 'sum'"),
    (lambda comm, **v: allreduce(comm, A, B, np.sin, **v), "TypeError: op must be an MPI.Op"),
    (lambda comm, **v: allreduce(comm, A, B, algorithm="oops", **v), "ValueError: algorithm 'oops' is not known to"),
    (lambda comm, **v: allreduce(comm, A, B, algorithm=["ring"], **v), "ValueError: algorithm \"['ring']\" is not"),
    (lambda comm, **v: allreduce(comm, A, B, algorithm="native", **v), "TypeError: comm must be an MPI communicator"),
    (lambda comm, **v: alltoall(comm, A, B, algorithm="shared_memory", **v), "TypeError: comm must be an MPI comm"),
    (lambda comm, **v: reduce_scatter(comm, A, B, **v), "ValueError: recv has 8 elements and should have 2"),
    (lambda comm, **v: allgather(comm, A, B, **v), "ValueError: recv has 8 elements and should have 32"),
    (lambda comm, **v: alltoall(comm, A[:7], B[:7], **v), "ValueError: send has 7 elements, which 4 ranks do not"),
    (lambda comm, **v: alltoall(comm, A, B[:4], **v), "ValueError: recv has 4 elements and should have 8"),
    (lambda comm, **v: broadcast(comm, A, root=4, **v), "ValueError: root is 4, but comm has ranks 0 to 3"),
    (lambda comm, **v: broadcast(comm, A, root=-1, **v), "ValueError: root is -1"),
    (lambda comm, **v: broadcast(comm, A, root=1.0, **v), "TypeError: root must be a rank, not 1.0"),
    (lambda comm, **v: broadcast(comm, 3.0, **v), "TypeError: buffer must be a NumPy array"),
])  # fmt: skip
def test_a_bad_argument_is_named_on_every_rank(call, expected, validate):
    for message in told(lambda comm, rank: call(comm, validate=validate)):
        assert message.startswith(expected)


def test_unknown_algorithm_lists_the_known():
    message = told(lambda comm, rank: allreduce(comm, A, B, algorithm="oops"))[0]
    assert all(name in message for name in ALGORITHMS["allreduce"])


@pytest.mark.parametrize("recv", [A, A[:4], A[2:6]])
def test_overlapping_buffers_are_refused(recv):
    send = A[: recv.size] if recv.size < A.size else A
    assert set(told(lambda comm, rank: allreduce(comm, send, recv))) == {
        "ValueError: recv overlaps send in memory; to reduce in place, pass send=MPI.IN_PLACE"
    }


@pytest.mark.parametrize("call, expected", [
    (lambda comm, rank: allreduce(comm, A[: 8 - (rank == 2)], np.empty(8 - (rank == 2))),
     "ValueError: size of send differs between ranks: rank 2 has 7; but ranks 0, 1, 3 have 8"),
    (lambda comm, rank: allreduce(comm, A.astype("f4" if rank else "f8"), np.empty(8, "f4" if rank else "f8")),
     "ValueError: dtype of send differs between ranks: rank 0 has float64; but ranks 1, 2, 3 have float32"),
    (lambda comm, rank: allreduce(comm, A, np.empty(8), np.maximum if rank % 2 else None),
     "ValueError: op differs between ranks: ranks 1, 3 have MAX; but ranks 0, 2 have SUM"),
    (lambda comm, rank: allreduce(comm, A, np.empty(8), algorithm="naive" if rank == 3 else "ring"),
     "ValueError: algorithm differs between ranks: rank 3 has naive; but ranks 0, 1, 2 have ring"),
    (lambda comm, rank: broadcast(comm, A.copy(), root=rank % 3),
     "ValueError: root differs between ranks: rank 1 has 1; rank 2 has 2; but ranks 0, 3 have 0"),
    (lambda comm, rank: broadcast(comm, A.copy()) if rank else allgather(comm, A, np.empty(32)),
     "ValueError: function differs between ranks: rank 0 has allgather; but ranks 1, 2, 3 have broadcast"),
    (lambda comm, rank: broadcast(comm, np.zeros(8 + rank % 2)),
     "ValueError: size of buffer differs between ranks: ranks 1, 3 have 9; but ranks 0, 2 have 8"),
])  # fmt: skip
def test_a_difference_between_ranks_is_told_on_every_rank(call, expected):
    assert set(told(call)) == {expected}


def test_bool_moves():
    def moved(comm):
        recv = np.empty(3, bool)
        allgather(comm, np.array([comm.rank == 1]), recv)
        return recv.tolist()

    assert practice(moved, 3).results == [[False, True, False]] * 3


def test_alltoall_does_not_advise_what_it_refuses():
    assert set(told(lambda comm, rank: alltoall(comm, A, A))) == {
        "ValueError: recv overlaps send in memory; receive into an array of its own"
    }


def test_a_rank_that_refuses_its_arguments_stops_the_others():
    messages = told(lambda comm, rank: allreduce(comm, np.zeros(16)[::2] if rank == 3 else A, np.empty(8)))
    assert messages[3].startswith("ValueError: send must be contiguous")
    for message in messages[:3]:
        assert message.startswith("ValueError: rank 3 refused the arguments. rank 3: send must be contiguous")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_the_odd_rank_is_found_for_any_number_of_ranks(size):
    def call(comm, rank):
        broadcast(comm, np.zeros(3 if rank == size - 1 else 4))

    messages = told(call, size)
    assert len(set(messages)) == 1
    if size > 2:
        assert f"rank {size - 1} has 3; but" in messages[0]
    elif size == 1:
        assert messages == ["nothing"]
