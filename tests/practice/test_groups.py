"""Compare groups and collectives of practice ranks with NumPy and with real ranks, and test their error messages."""

import sys
import threading

import cloudpickle
import mpi4py
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labs_helpers.launch.mpirun import run_on_ranks
from labs_helpers.practice import Deadlock, PracticeTimeout, RankFailed, SendBufferOverwritten
from labs_helpers.practice.groups import IN_PLACE, Collective, Mismatch, practice_groups
from tests.practice import group_programs

cloudpickle.register_pickle_by_value(group_programs)
mpi4py.rc(initialize=False, finalize=False)  # a program's import of mpi4py.MPI starts no MPI in this process


@pytest.fixture(autouse=True)
def no_rank_is_left_running():
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def test_practice_ranks_do_as_real_ranks_do():
    """All programs in one start, which takes longer than they do."""
    real = run_on_ranks(group_programs.run_all, 4, timeout=60, env={"OMPI_MCA_mpi_yield_when_idle": "1"})
    for program in group_programs.PROGRAMS:
        expected = [of_rank.get(program.__name__) for of_rank in real]
        assert practice_groups(program, 4).results == expected, program.__name__
    assert {answer for of_rank in real for answer in of_rank["refused"].values()} == {"refused"}


SIZES = {"size": st.integers(1, 6), "count": st.integers(0, 5), "seed": st.integers(0, 99)}


@given(**SIZES, dtype=st.sampled_from(["f8", "f4", "f2", "i8", "u1", "c16", "?"]))
@settings(max_examples=30)
def test_what_moves_arrives_where_it_belongs(size, count, seed, dtype):
    everyone = np.random.default_rng(seed).integers(0, 9, (size, size, count)).astype(dtype)
    root = seed % size

    def program(comm):
        mine, whole, part = everyone[comm.rank], np.zeros((size, size, count), dtype), np.zeros((1, count), dtype)
        turned, sent = np.zeros_like(mine), mine.copy()
        comm.Allgather(mine, whole)
        comm.Alltoall(mine, turned)
        comm.Bcast(sent, root)
        comm.Scatter(mine, part, root)
        gathered = np.zeros_like(whole) if comm.rank == root else None
        comm.Gather(mine, gathered, root)
        assert comm.allgather(mine[0].tolist()) == everyone[:, 0].tolist()
        return whole, turned, sent, part, gathered

    ran = practice_groups(program, size)
    for rank, (whole, turned, sent, part, gathered) in enumerate(ran.results):
        assert np.array_equal(whole, everyone) and np.array_equal(turned, everyone[:, rank])
        assert np.array_equal(sent, everyone[root]) and np.array_equal(part[0], everyone[root, rank])
        assert np.array_equal(gathered, everyone) if rank == root else gathered is None
    all_ranks, one, whole = tuple(range(size)), everyone[0].nbytes, everyone.nbytes
    nbytes = {"Allgather": whole, "Alltoall": one, "Bcast": one, "Scatter": one, "Gather": whole, "allgather": 0}
    assert ran.calls == [Collective(name, all_ranks, n) for name, n in nbytes.items()]


@given(**SIZES, dtype=st.sampled_from(["f8", "f4", "f2", "i8", "u1"]), op=st.sampled_from([np.add, np.maximum]))
@settings(max_examples=30)
def test_what_is_reduced_is_reduced_over_all_ranks(size, count, seed, dtype, op):
    everyone = np.random.default_rng(seed).integers(0, 9, (size, size, count)).astype(dtype)
    before, expected = everyone.copy(), op.reduce(everyone, 0, dtype=everyone.dtype)

    def program(comm):
        mine, total, part = everyone[comm.rank], np.zeros((size, count), dtype), np.zeros(count, dtype)
        comm.Allreduce(mine, total, op)
        comm.Reduce_scatter_block(mine, part, op)
        own, later = mine.copy(), mine.copy()
        comm.Allreduce(IN_PLACE, own, op)
        request = comm.Iallreduce(IN_PLACE, later, op)
        assert np.array_equal(later, mine)  # nothing before Wait
        request.Wait()
        return total, part, own, later

    ran = practice_groups(program, size)
    for rank, (total, part, own, later) in enumerate(ran.results):
        assert all(np.array_equal(x, expected) for x in (total, own, later)) and np.array_equal(part, expected[rank])
    assert np.array_equal(everyone, before) and not ran.never_waited
    names = ["Allreduce", "Reduce_scatter_block", "Allreduce", "Allreduce"]
    assert ran.calls == [Collective(name, tuple(range(size)), expected.nbytes) for name in names]


@given(pairs=st.lists(st.tuples(st.integers(0, 2), st.integers(-2, 2)), min_size=1, max_size=7))
@settings(max_examples=40)
def test_split_orders_by_key_then_by_rank(pairs):
    def program(comm):
        group = comm.Split(*pairs[comm.rank])
        assert group.Get_rank() == group.rank and group.Get_size() == group.size
        members = group.allgather(comm.rank)
        assert list(group.ranks) == members
        return members, group.rank

    ran = practice_groups(program, len(pairs))
    for rank, (members, place) in enumerate(ran.results):
        mine = [other for other, (color, _) in enumerate(pairs) if color == pairs[rank][0]]
        assert members == sorted(mine, key=lambda other: pairs[other][1]) and members[place] == rank
    assert {call.ranks for call in ran.calls} == {tuple(members) for members, _ in ran.results}


def test_calls_are_those_of_a_rank_with_ranks_of_the_world():
    def program(comm):
        group = comm.Split(color=comm.rank // 2, key=-comm.rank)
        group.Allgather(np.zeros(3, np.float32), np.zeros((2, 3), np.float32))
        if comm.rank > 1:
            group.bcast(None)
        comm.Barrier()

    ran = practice_groups(program, 4)
    assert ran.of(0) == [Collective("Allgather", (1, 0), 24)] and ran.of(0) == ran.of(1)
    assert ran.of(3) == [Collective("Allgather", (3, 2), 24), Collective("bcast", (3, 2), 0)]
    assert len(ran.calls) == 3


def test_no_mpi_is_needed(monkeypatch):
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)

    def program(comm):
        nobody, x = comm.Split(-32766 if comm.rank else 0), np.ones(2)
        comm.Allreduce(IN_PLACE, x)
        return nobody is None, comm.allreduce(comm.rank, max), x.tolist()

    assert practice_groups(program, 3).results == [(False, 2, [3, 3]), (True, 2, [3, 3]), (True, 2, [3, 3])]


def test_objects_are_copied_and_arguments_dealt_out():
    shared = {"of": "all"}

    def program(comm, own, common):
        everyone = comm.allgather(own)
        own.append(comm.rank)
        everyone[0].append("mine alone")
        return own, everyone, comm.bcast(common) is not common

    results = practice_groups(program, 2, [["a"], ["b"]], shared).results
    assert results == [(["a", 0], [["a", "mine alone"], ["b"]], True), (["b", 1], [["a", "mine alone"], ["b"]], True)]
    with pytest.raises(ValueError, match="one value for each rank: 3, not 2"):
        practice_groups(program, 3, [["a"], ["b"]], shared)
    for size in (0, -1, 2.0, True):
        with pytest.raises(ValueError, match="number of ranks"):
            practice_groups(program, size)


def raised(call, size=2):
    """The error that ended a run."""
    with pytest.raises((RankFailed, Deadlock, PracticeTimeout)) as caught:
        practice_groups(call, size, timeout=60)
    return caught.value.error if isinstance(caught.value, RankFailed) else caught.value


def x(n, dtype=float):
    return np.zeros(n, dtype)


@pytest.mark.parametrize(("call", "told"), [
    (lambda c: c.Barrier() if c.rank else c.Allreduce(x(1), x(1)), "1 calls Barrier where rank 0.*calls Allreduce"),
    (lambda c: c.Allreduce(x(1 + c.rank), x(1 + c.rank)), "Allreduce: elements is 2 on rank 1 and 1 on rank 0"),
    (lambda c: (lambda b: c.Allreduce(b, b.copy()))(x(1, f"f{8 - 4 * c.rank}")), "dtype is float32 on rank 1"),
    (lambda c: c.Allreduce(x(1), x(1), np.maximum if c.rank else np.add), "op is MAX on rank 1 and SUM on rank 0"),
    (lambda c: c.Allreduce(IN_PLACE if c.rank else x(1), x(1)), "IN_PLACE is True on rank 1 and False on rank 0"),
    (lambda c: c.Bcast(x(1), root=c.rank), "Bcast: root is 1 on rank 1 and 0 on rank 0"),
    (lambda c: c.Scatter(x(2 + 2 * c.rank), x(1 + c.rank)), "Scatter: elements is 2 on rank 1 and 1 on rank 0"),
    (lambda c: c.Reduce_scatter(x(3), x(2), [[2, 1], [1, 2]][c.rank]), r"counts is \[1, 2\] on rank 1 and \[2, 1\] on"),
    (lambda c: c.Iallreduce(x(1), x(1)) if c.rank else c.Allreduce(x(1), x(1)), "calls Iallreduce where rank 0"),
    (lambda c: c.Split(0) if c.rank else c.Dup(), "rank 1 calls Split where rank 0.*calls Dup"),
    (lambda c: c.Split(0).Split(0).bcast(1) if c.rank else c.Split(0).Split(0).Barrier(), "calls bcast where rank 0"),
])  # fmt: skip
def test_ranks_that_do_not_call_alike_are_told(call, told):
    error = raised(call)
    assert isinstance(error, Mismatch)
    with pytest.raises(Mismatch, match=told):
        raise error


@pytest.mark.parametrize(("call", "kind", "told"), [
    (lambda c: c.Allgather(x((4, 4))[:, :2], x((2, 4, 2))), BufferError, "not contiguous: shape"),
    (lambda c: c.Allgather(x(3), x(7)), ValueError, "Allgather: recv has 7 elements, 2 ranks × 3 of send are 6"),
    (lambda c: c.Reduce_scatter_block(x(7), x(3)), ValueError, "send has 7 elements, 2 ranks × 3 of recv are 6"),
    (lambda c: c.Reduce_scatter(x(4), x(2), [1, 3]), ValueError, r"recv 2, the counts of 2 ranks are \[1, 3\]"),
    (lambda c: c.Allreduce(x(3), x(4)), ValueError, "Allreduce: recv has 4 elements, send 3"),
    (lambda c: c.Alltoall(x(3), x(3)), ValueError, "Alltoall: 3 elements are not 2 equal blocks"),
    (lambda c: c.Allgather(IN_PLACE, x(3)), ValueError, "Allgather: 3 elements are not 2 equal blocks"),
    (lambda c: c.Allgather(x(2), x(4, "f4")), TypeError, "send is float64, recv is float32"),
    (lambda c: (lambda b: c.Allgather(b[:2], b))(x(4)), ValueError, "Allgather: send and recv share memory"),
    (lambda c: (lambda b: c.Allreduce(b, b))(x(4)), ValueError, "Allreduce: send and recv share memory"),
    (lambda c: c.Allreduce(x(1), np.broadcast_to(0.0, 1)), BufferError, "read-only"),
    (lambda c: c.Allgather([1.0], x(2)), TypeError, "NumPy array, not float"),
    (lambda c: c.Allreduce(x(1, bool), x(1, bool)), ValueError, "MPI has no SUM of bool"),
    (lambda c: c.Allreduce(x(1, complex), x(1, complex), np.maximum), ValueError, "MPI has no MAX of complex128"),
    (lambda c: c.Allreduce(x(1), x(1), "sum"), ValueError, "practice ranks reduce with SUM, PROD, MIN, MAX, not 'sum'"),
    (lambda c: c.Split(0.5), TypeError, "Split: color is 0.5, not a whole number"),
    (lambda c: c.Split(0, key=None), TypeError, "Split: key is None"),
    (lambda c: c.Split(-5), ValueError, "color is -5; it has to be 0 or more"),
    (lambda c: c.bcast(1, root=2), ValueError, "bcast: root is 2, but the ranks are 0 to 1"),
    (lambda c: c.scatter([1], root=c.rank), ValueError, "scatter: 1 objects for 2 ranks"),
    (lambda c: c.Send(x(1), 0), AttributeError, "know Get_rank.*Split.*alltoall; not 'Send'"),
    (lambda c: c.Iallreduce(x(1), x(1)).Cancel(), AttributeError, "Wait, Waitall and Test, not 'Cancel'"),
])  # fmt: skip
def test_a_wrong_call_is_told(call, kind, told):
    with pytest.raises(kind, match=told):
        raise raised(call)


def crossed(comm):
    rows, all_of_them = comm.Split(comm.rank // 2), comm.Dup()
    first, second = (rows, all_of_them) if comm.rank != 1 else (all_of_them, rows)
    first.Barrier()
    second.Barrier()


def two_of_the_same_ranks(comm):
    one, other = comm.Dup(), comm.Dup()
    (one if comm.rank else other).Allreduce(x(1), x(1))


@pytest.mark.parametrize(("call", "size", "told"), [
    (lambda c: c.rank == 1 or c.Split(0), 2, "rank 0 waits in Split of ranks 0, 1 for 1, which has ended"),
    (lambda c: c.rank or c.Split(c.rank), 3, "rank 0 waits in Split of ranks 0, 1, 2 for 1, which has ended"),
    (lambda c: c.rank or c.Iallreduce(x(1), x(1)).Wait(), 2, "in Iallreduce of ranks 0, 1 for 1, which has ended"),
    (crossed, 4, "rank 0 waits in Barrier of ranks 0, 1 for 1, which waits in Barrier of ranks 0, 1, 2, 3 for 0"),
    (two_of_the_same_ranks, 2, "rank 0 waits in Allreduce of ranks 0, 1 for 1, which waits in Allreduce"),
])  # fmt: skip
def test_a_deadlock_names_who_waits_for_whom(call, size, told):
    with pytest.raises(Deadlock, match=told):
        raise raised(call, size)


def test_a_deadlock_tells_the_line():
    told = str(raised(two_of_the_same_ranks))
    assert told.count("in two_of_the_same_ranks, line") == 2 and "Allreduce(x(1), x(1))" in told


def test_what_is_given_to_a_started_collective_may_not_change():
    def program(comm):
        mine, total = np.ones(2), np.zeros(2)
        request = comm.Iallreduce(mine, total)
        mine[1] = 5
        request.Wait()

    error = raised(program)
    assert isinstance(error, SendBufferOverwritten) and "rank 0 changed what it gives to Iallreduce" in str(error)


def test_requests_that_nobody_waited_for_are_reported():
    ran = practice_groups(lambda comm: comm.Iallreduce(x(2), x(2)) and None, 2)
    assert ran.never_waited == ["rank 0: Iallreduce of ranks 0, 1", "rank 1: Iallreduce of ranks 0, 1"]
    assert ran.calls == [Collective("Allreduce", (0, 1), 16)]


def test_a_run_repeats_exactly():
    def program(comm):
        groups = [comm.Split(comm.rank % n, -comm.rank) for n in (2, 3)]
        return [group.allreduce([comm.rank]) for group in groups * 3]

    first, second = practice_groups(program, 6), practice_groups(program, 6)
    assert first == second and len(first.calls) == 15
