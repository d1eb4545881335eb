"""What practice ranks wait for, and the cause that the checks of lab 06 name for it: each condition by itself."""

import numpy as np
import pytest

from labs_helpers.course.verdict.deadlocks import describe_deadlock
from labs_helpers.practice import Deadlock, practice

ONE = np.zeros(1)


def sends_with_a_tag(comm):
    comm.Send(ONE, 1, 3) if comm.rank == 0 else comm.Recv(ONE.copy(), 0, 4)


def sends_and_receives_the_same_way(comm):
    right = (comm.rank + 1) % comm.size
    comm.Sendrecv(ONE, right, 0, ONE.copy(), right)


def both_requests_the_same_way(comm):
    right = (comm.rank + 1) % comm.size
    requests = [comm.Isend(ONE, right), comm.Irecv(ONE.copy(), right)]
    requests[0].Waitall(requests)


def an_irecv_takes_the_message(comm):
    other = 1 - comm.rank
    comm.Irecv(ONE.copy(), other)
    comm.Sendrecv(ONE, other, 0, ONE.copy(), other)


def two_meet_while_one_is_away(comm):
    if comm.rank < 2:
        comm.Send(ONE, 1 - comm.rank)


CASES = [
    (sends_with_a_tag, 2, "a message with a different tag"),
    (lambda comm: comm.rank or comm.Recv(ONE.copy(), 1), 2, "has returned too early"),
    (lambda comm: comm.rank or comm.Recv(ONE.copy()), 3, "has returned too early"),
    (lambda comm: comm.rank or comm.Barrier(), 2, "has returned too early"),
    (sends_and_receives_the_same_way, 3, "senders and receivers do not match"),
    (both_requests_the_same_way, 3, "senders and receivers do not match"),
    (lambda comm: comm.Recv(ONE.copy(), comm.rank), 1, "with itself waits forever; copy"),
    (
        lambda comm: comm.Recv(ONE.copy(), comm.rank),
        2,
        "with 2 ranks, no rank needs to send to itself: rank 0 needs a",
    ),
    (lambda comm: [comm.Send, comm.Recv][comm.rank % 2](ONE.copy(), (comm.rank + 1) % 4), 4, "do not match"),
    (lambda comm: comm.Recv(ONE.copy(), 0) if comm.rank else comm.Barrier(), 2, "in a barrier"),
    (lambda comm: comm.Send(ONE, 1 - comm.rank), 2, "all ranks send first"),
    (lambda comm: comm.Isend(ONE, 1 - comm.rank).Wait(), 2, "all ranks send first"),
    (lambda comm: comm.Recv(ONE.copy(), 1 - comm.rank), 2, "all ranks receive first"),
    (lambda comm: comm.Irecv(ONE.copy(), 1 - comm.rank).Wait(), 2, "all ranks receive first"),
    (an_irecv_takes_the_message, 2, ""),
    (two_meet_while_one_is_away, 3, "each of these ranks sends to the next, and none of them receives"),
]


@pytest.mark.parametrize(("function", "size", "cause"), CASES)
def test_the_cause_of_a_deadlock(function, size, cause):
    with pytest.raises(Deadlock) as caught:
        practice(function, size)
    wrong = describe_deadlock("case", caught.value)
    assert [cause in named for named in wrong.causes] == ([True] if cause else [])
    assert wrong.message.startswith(f"a deadlock: {caught.value}")
    assert ("Requests without a wait so far: rank 0: Irecv from 1" in wrong.message) == (
        function is an_irecv_takes_the_message
    )
