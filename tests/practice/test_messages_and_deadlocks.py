"""Test that practice ranks behave like mpi4py's, deterministically, and report errors immediately."""

import queue
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.practice import (
    Deadlock,
    PracticeTimeout,
    RankFailed,
    SendBufferOverwritten,
    Truncated,
    practice,
    scheduler,
)


@pytest.fixture(autouse=True)
def no_rank_is_left_running():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def shift(comm, block):
    received = np.empty_like(block)
    comm.Sendrecv(block, (comm.rank + 1) % comm.size, 0, received, (comm.rank - 1) % comm.size)
    return received.tolist()


def everybody_sends_first(comm, block):
    received = np.empty_like(block)
    comm.Send(block, (comm.rank + 1) % comm.size)
    comm.Recv(received, (comm.rank - 1) % comm.size)
    return received.tolist()


def both(comm, dest, source, sendtag=0, recvtag=None):
    """Sends to the rank `dest` further on and receives from the one `source` further on, or from any."""
    source = None if source is None else (comm.rank + source) % comm.size
    comm.Sendrecv(np.zeros(1), (comm.rank + dest) % comm.size, sendtag, np.zeros(1), source, recvtag)


def failure(kind, function, size, *args, **limits):
    with pytest.raises(kind) as caught:
        practice(function, size, *args, **limits)
    return caught.value


@given(size=st.integers(1, 9), count=st.integers(0, 20), dtype=st.sampled_from(["f4", "f8", "i2", "i8", "c16", "?"]))
@settings(max_examples=40)
def test_blocks_go_round_any_number_of_ranks(size, count, dtype):
    blocks = [np.arange(count).astype(dtype) + np.array(rank).astype(dtype) for rank in range(size)]
    ran = practice(shift, size, blocks)
    assert ran.results == [blocks[rank - 1].tolist() for rank in range(size)]
    assert ran.bytes_sent == ran.bytes_received == [blocks[0].nbytes] * size
    assert ran.messages_sent == [1] * size
    assert ran.steps == 1 and not ran.unreceived and not ran.never_waited


def test_a_run_repeats_exactly():
    def noisy(comm):
        got = np.zeros(1)
        for turn in range(comm.size):
            if comm.rank == turn:
                for _ in range(comm.size - 1):
                    comm.Recv(got)
            else:
                request = comm.Isend(np.array([float(comm.rank)]), turn, tag=turn)
                request.Wait()
        return got[0]

    first, second = practice(noisy, 6), practice(noisy, 6)
    assert first == second and len(first.messages) == 30


def test_steps_are_those_of_ranks_that_send_and_receive_one_message_at_a_time():
    def gather(comm):
        if comm.rank == 0:
            blocks = np.zeros((comm.size, 2))
            requests = [comm.Irecv(blocks[source], source) for source in range(1, comm.size)]
            requests[0].Waitall(requests)
            return blocks[:, 0].tolist()
        comm.Send(np.full(2, float(comm.rank)), 0)

    ran = practice(gather, 4)
    assert ran.results[0] == [0, 1, 2, 3]
    assert [(m.source, m.posted, m.send_time, m.recv_time) for m in ran.messages] == [(1, 0, 0, 1), (2, 0, 1, 2),
                                                                                     (3, 0, 2, 3)]  # fmt: skip


def test_everybody_sends_first_is_a_circle_that_is_told():
    def before(comm):
        comm.Barrier()
        everybody_sends_first(comm, np.zeros(3))

    error = failure(Deadlock, before, 3)
    told = str(error).splitlines()
    assert told[0] == "rank 0 waits to send to 1, which waits to send to 2, which waits to send to 0"
    assert "in everybody_sends_first, line" in told[1] and "comm.Send(block" in told[3]
    assert len(error.practice.unreceived) == 3 and error.practice.barriers == [0]
    assert "rank 0 waits to send to 0, itself" in str(failure(Deadlock, before, 1))
    many = str(failure(Deadlock, before, 30))
    assert "and so on, round to 0" in many and "and 22 more ranks" in many


@pytest.mark.parametrize(("nbytes", "works"), [(0, True), (4000, True), (4096, False)])
def test_an_eager_limit_hides_it_for_short_messages(nbytes, works):
    block = np.arange(nbytes, dtype=np.uint8)
    if works:
        assert practice(everybody_sends_first, 3, block, eager_limit=4000).results == [block.tolist()] * 3
    else:
        failure(Deadlock, everybody_sends_first, 3, block, eager_limit=4000)


@pytest.mark.parametrize(("function", "size", "told"), [
    (lambda comm: comm.rank == 1 or comm.Recv(np.zeros(1), 1), 2, "rank 0 waits for a message from 1, which has ended"),
    (lambda comm: comm.rank == 1 or comm.Barrier(), 2, "rank 0 waits in a barrier for 1, which has ended"),
    (lambda comm: comm.Recv(np.zeros(1)), 2, "any rank, such as 1, which waits for a message from any rank"),
    (lambda comm: comm.rank or comm.Recv(np.zeros(1)), 3, "from any rank, but all others have ended"),
    (lambda comm: comm.Recv(np.zeros(1)), 1, "there is no other rank"),
    (lambda comm: comm.Send(np.zeros(2), 1, 3) if comm.rank == 0 else comm.Recv(np.zeros(2), 0, 4), 2,
     "rank 0 waits to send to 1 (tag 3), which waits for a message from 0 (tag 4; one with tag 3 is there)"),
    (lambda comm: comm.Send(np.zeros(1), 1, 3) if comm.rank == 0 else comm.Recv(np.zeros(1), 0, 4), 2,
     "rank 1 waits for a message from 0 (tag 4; one with tag 3 is there), which has ended"),
    (lambda comm: comm.Barrier() if comm.rank == 0 else comm.Recv(np.zeros(1), 0), 2,
     "rank 0 waits in a barrier for 1, which waits for a message from 0"),
    (lambda comm: comm.Ssend(np.zeros(0), 1 - comm.rank), 2, "which waits to send to 0"),
])  # fmt: skip
def test_who_waits_for_whom(function, size, told):
    assert told in str(failure(Deadlock, function, size, eager_limit=8)).splitlines()[0]


@pytest.mark.parametrize(("function", "size", "told"), [
    (lambda comm: both(comm, 1, 1), 4, "waits to send to 1 and for a message from 1 (which sends to 2), in both, line"),
    (lambda comm: both(comm, 1, -1, 1, 2), 3,
     "waits to send to 1 (tag 1) and for a message from 2 (tag 2; one with tag 1 is there), in both, line"),
    (lambda comm: comm.rank or both(comm, 1, 2), 3,
     "waits to send to 1 and for a message from 2 (which has ended), in both, line"),
    (lambda comm: comm.Barrier() if comm.rank else both(comm, 1, 2), 3,
     "waits to send to 1 and for a message from 2 (which sends nothing), in both, line"),
    (lambda comm: both(comm, 1, None, 1, 2), 2,
     "waits to send to 1 (tag 1) and for a message (tag 2; one with tag 1 is there) from any rank, in both, line"),
])  # fmt: skip
def test_both_halves_of_a_sendrecv_are_told(function, size, told):
    assert str(failure(Deadlock, function, size)).splitlines()[1].startswith(f"  rank 0 {told}")


def test_a_rank_that_raises_ends_the_others():
    unwound = []

    def one_fails(comm):
        comm.Barrier()
        try:
            if comm.rank == 2:
                raise KeyError("chunk")
            comm.Recv(np.zeros(1), 2)
        finally:
            unwound.append(comm.rank)

    error = failure(RankFailed, one_fails, 4)
    assert error.rank == 2 and error.__cause__ is error.error and isinstance(error.error, KeyError)
    assert "rank 2 raised KeyError" in str(error) and 'raise KeyError("chunk")' in str(error)
    assert unwound == [2, 0, 1]  # rank 3 had not come so far


def test_a_loop_without_end_meets_the_time_limit():
    def endless(comm):
        comm.Barrier()
        while comm.rank == 1:
            try:
                comm.size  # noqa: B018
            except Exception:
                pass

    error = failure(PracticeTimeout, endless, 3, timeout=0.1)
    assert "rank 1 was still at work after 0.1 s, in endless, line" in str(error)


def test_a_buffer_that_is_still_being_sent_may_not_change():
    def overwrites(comm):
        block = np.arange(4.0)
        if comm.rank == 0:
            request = comm.Isend(block, 1)
            block[2] = np.nan
            request.Wait()
        else:
            comm.Recv(block, 0)

    error = failure(RankFailed, overwrites, 2)
    assert isinstance(error.error, SendBufferOverwritten)
    assert "rank 0 changed element 2 of 4 of what it sends to rank 1" in str(error)
    assert isinstance(failure(RankFailed, overwrites, 2, eager_limit=100).error, SendBufferOverwritten)


def test_what_irecv_brings_is_there_after_wait_and_not_before():
    def peeks(comm):
        block = np.zeros(1)
        request = comm.Irecv(block, 0)
        comm.Send(np.ones(1), 0)
        early = block[0]
        request.Wait()
        return early, block[0]

    assert practice(peeks, 1).results == [(0, 1)]


def test_what_nobody_receives_or_waits_for_is_reported():
    def careless(comm):
        if comm.rank == 0:
            comm.Send(np.zeros(2), 1, tag=5)
            comm.Irecv(np.zeros(2), 1)

    ran = practice(careless, 2, eager_limit=16)
    assert [(m.source, m.dest, m.tag, m.nbytes, m.recv_time) for m in ran.unreceived] == [(0, 1, 5, 16, None)]
    assert ran.never_waited == ["rank 0: Irecv from 1"] and ran.bytes_sent == [16, 0]


def test_messages_keep_their_order_and_tags_choose():
    def two_tags(comm):
        if comm.rank == 0:
            for number, tag in ((1, 7), (2, 8), (3, 7)):
                comm.Send(np.array([number]), 1, tag)
            return None
        got = np.zeros((3, 1), dtype=int)
        for row, tag in zip(got, (8, 7, 7), strict=True):
            comm.Recv(row, source=0, tag=tag)
        return got.ravel().tolist()

    assert practice(two_tags, 2, eager_limit=8).results[1] == [2, 1, 3]
    failure(Deadlock, two_tags, 2)  # a synchronous send of the first waits for its own receive


def test_buffers_are_slices_shapes_lists_and_nobody():
    class Double:
        @staticmethod
        def Get_size():
            return 8

    def pieces(comm):
        matrix = np.zeros((2, 3), order="F") if comm.rank else np.array([[1.0, 3, 5], [2, 4, 6]], order="F")
        if comm.rank == 0:
            comm.Send(matrix, 1)
            comm.Send([matrix.ravel("K")[1:4], Double], 1)
        else:
            got = np.zeros(6)
            comm.Recv(matrix, 0)
            comm.Recv([got, 3, Double], 0)
            comm.Recv(got, -2)  # MPI.PROC_NULL, of Open MPI
            comm.Send(got[::2], -2) if got[0] < 0 else None
            return matrix.tolist(), got.tolist()

    assert practice(pieces, 2).results[1] == ([[1, 3, 5], [2, 4, 6]], [2, 3, 4, 0, 0, 0])


@pytest.mark.parametrize(("call", "kind", "told"), [
    (lambda comm: comm.Send(np.zeros(4)[::2], 0), BufferError, "not contiguous"),
    (lambda comm: comm.Send(3.0, 0), TypeError, "np.array"),
    (lambda comm: comm.Send(np.array([None]), 0), TypeError, "object"),
    (lambda comm: comm.Send(np.zeros(1), 2), ValueError, "dest is 2, but the ranks are 0 to 1"),
    (lambda comm: comm.Recv(np.zeros(1), -7), ValueError, "source is -7"),
    (lambda comm: comm.Send(np.zeros(1), 0, -4), ValueError, "tag"),
    (lambda comm: comm.Recv(np.broadcast_to(0.0, 1), 0), BufferError, "read-only"),
    (lambda comm: comm.Send([np.zeros(2), 3, "d"], 0), ValueError, "count 3"),
    (lambda comm: comm.Sendrecv(b := np.zeros(3), 0, 0, b[1:], 0), ValueError, "overlap"),
    (lambda comm: comm.Sendrecv(np.zeros(3), comm.rank, 0, np.zeros(2), comm.rank), Truncated,
     r"rank 0 sent 24 bytes \(3 elements\), rank 0 receives into 16 \(2\)"),
    (lambda comm: comm.Sendrecv(np.zeros(3), comm.rank, 0, np.zeros(3, int), comm.rank), TypeError, "float64"),
    (lambda comm: comm.Allreduce(np.zeros(1), np.zeros(1)), AttributeError, "practice ranks know Get_rank.*Allreduce"),
    (lambda comm: comm.send(1, 0), AttributeError, "NumPy arrays: Send"),
    (lambda comm: comm.Isend(np.zeros(1), comm.rank).Cancel(), AttributeError, "Test and Testall, not 'Cancel'"),
])  # fmt: skip
def test_a_wrong_call_is_told(call, kind, told):
    with pytest.raises(kind, match=told):
        try:
            practice(call, 2)
        except RankFailed as failed:
            raise failed.error from None


def test_arguments_are_dealt_out_and_copied():
    shared = np.zeros(1)

    def adds(comm, own, common, word):
        common += comm.rank
        return own, common[0], word

    assert practice(adds, 2, ["a", "b"], shared, "w").results == [("a", 0, "w"), ("b", 1, "w")]
    with pytest.raises(ValueError, match="one value for each rank: 3, not 2"):
        practice(adds, 3, ["a", "b"], shared, "w")
    for size in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="number of ranks"):
            practice(adds, size)


def test_errstate_holds_inside_the_ranks():
    with np.errstate(all="raise"):
        error = failure(RankFailed, lambda comm: np.float64(1) / np.float64(0), 2)
    assert isinstance(error.error, FloatingPointError)


def test_one_rank_runs_at_a_time_however_slowly_it_lets_go(monkeypatch):
    """A rank that is held up just after it has passed the turn on finds that it has the turn again, or does not."""
    handed_on, quick = threading.Event(), queue.SimpleQueue

    class Slow:
        def __init__(self):
            self._turns = quick()
            self.get = self._turns.get

        def put(self, turn):
            handed_on.set()
            handed_on.clear()
            self._turns.put(turn)
            handed_on.wait(0.005)  # until the next rank has handed it on in its turn

    monkeypatch.setattr(scheduler.queue, "SimpleQueue", Slow)
    running, together = set(), []

    def call(comm):
        for turn in range(10):
            running.add(comm.rank)
            for _ in range(300):
                if len(running) > 1:
                    together.append(set(running))
            running.discard(comm.rank)
            shift(comm, np.array([turn]))

    practice(call, 3)
    assert not together


def test_a_deadlock_carries_what_each_rank_waits_for():
    def call(comm):
        if comm.rank == 0:
            comm.Irecv(np.zeros(1), 1, tag=5)
            both(comm, 1, 1, 3, 4)
        elif comm.rank == 1:
            comm.Isend(np.zeros(1), 2).Wait()
        elif comm.rank == 2:
            comm.Barrier()

    error = failure(Deadlock, call, 4)
    assert error.chain == [0, 1, 2, 0] and [one.call for one in error.ranks] == ["Sendrecv", "Wait", "Barrier", ""]
    assert [one.ended for one in error.ranks] == [False, False, False, True]
    waits = [[(wait.kind, wait.peer, wait.tag) for wait in one.waits] for one in error.ranks]
    assert waits == [[("send", 1, 3), ("recv", 1, 4)], [("send", 2, 0)], [("barrier", None, None)], []]
    assert error.ranks[1].place.startswith("call, line ") and "comm.Isend" in error.ranks[1].place
    assert [str(request) for request in error.requests] == ["rank 0: Irecv from 1"]
    assert len(error.sends) == 2 and len(error.receives) == 2
