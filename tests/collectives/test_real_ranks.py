"""Compare the same functions on real MPI ranks with MPI's own collectives."""

from pathlib import Path

import numpy as np
import pytest

from labs_helpers.collectives import verify
from labs_helpers.collectives.counting import CountingComm
from labs_helpers.collectives.interface import ALGORITHMS, allreduce, alltoall, reduce_scatter
from labs_helpers.collectives.nodes import pretend_nodes
from labs_helpers.collectives.shared_memory import board, segment
from labs_helpers.launch.mpirun import RanksFailed, mpirun, run_on_ranks

SCRIPT = Path(__file__).parents[2] / "mpi_scripts/check_collectives.py"
QUICK = ["--dtypes", "float64", "complex128"]


@pytest.mark.parametrize("ranks", [2, 5])  # the others in the soak test
def test_every_algorithm_agrees_with_native(ranks):
    first, *others = mpirun(SCRIPT, ranks, *QUICK, timeout=60)
    assert first.startswith(f"{ranks} ranks: ") and "cases agree" in first
    assert not any(others)


@pytest.mark.soak
@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 6, 7, 8, 12])
def test_every_algorithm_agrees_with_native_for_more_dtypes(ranks):
    arguments = ["--validate"] if ranks in (1, 4, 5) else []  # alone, a power of two, and what is none
    more = ["float64", "float32", "int32", "uint8", "complex128", "int64", "int8", "complex64", "float16"]
    assert "cases agree" in mpirun(SCRIPT, ranks, *arguments, "--dtypes", *more, timeout=300)[0]


@pytest.mark.parametrize("ranks, ranks_per_node", [pytest.param(4, 2, marks=pytest.mark.soak), (7, 3)])
def test_between_nodes(ranks, ranks_per_node):
    assert "cases agree" in mpirun(SCRIPT, ranks, "--ranks-per-node", ranks_per_node, *QUICK, timeout=60)[0]


def test_the_script_tells_the_failing_case_and_fails(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text(f"""
import runpy
from labs_helpers.collectives import interface
from labs_helpers.collectives.algorithms import ring

def lose_the_last(comm, source, target, op):
    ring.allreduce(comm, source, target, op)
    if target.size > 1 and comm.Get_rank() == 1:
        target[-1] = 0.5

interface.IMPLEMENTATIONS["allreduce"]["ring"] = lose_the_last
runpy.run_path({str(SCRIPT)!r}, run_name="__main__")
""")
    with pytest.raises(RanksFailed) as caught:
        mpirun(broken, 2, *QUICK, timeout=60)
    assert "allreduce, 7 elements of float64, SUM, ring: wrong on ranks [1]" in str(caught.value)


def misused(comm):
    """What each misuse raises, by its name; with every algorithm where a hang was possible."""
    from mpi4py import MPI

    a, b, alone = np.zeros(8), np.zeros(8), comm.rank == 1
    group = comm.Split(int(comm.rank > 0))
    inter = group.Create_intercomm(0, comm, int(comm.rank == 0))
    calls = {
        "in place on one": lambda: allreduce(comm, MPI.IN_PLACE if alone else a, b),
        "refused by one": lambda: allreduce(
            comm, a if alone else a.astype(int), b if alone else b.astype(int), MPI.BAND
        ),
        "complex MAX": lambda: allreduce(comm, a + 0j, b + 0j, MPI.MAX),
        "two groups": lambda: allreduce(inter, a, b),
    }
    calls |= {
        f"BAND, {name}": lambda name=name: allreduce(comm, a, b, MPI.BAND, name) for name in ALGORITHMS["allreduce"]
    }
    calls |= {
        f"MINLOC, {name}": lambda name=name: allreduce(comm, a, b, MPI.MINLOC, name) for name in ("naive", "ring")
    }
    told = {}
    for name, call in calls.items():
        try:
            call()
        except (TypeError, ValueError) as error:
            told[name] = str(error)
    both = np.empty(2, bool)
    allreduce(comm, np.array([True, alone]), both, MPI.LAND)
    return told, both.tolist()


def test_what_could_hang_is_told_on_every_rank():
    for rank, (told, both) in enumerate(run_on_ranks(misused, 3, timeout=100)):
        assert both == [True, False]
        for algorithm in ALGORITHMS["allreduce"]:
            expected = "op BAND does not reduce float64; by MPI's table it reduces integers"
            assert told.pop(f"BAND, {algorithm}") == expected
        assert (
            told.pop("MINLOC, naive")
            == told.pop("MINLOC, ring")
            == ("op MINLOC does not reduce float64; by MPI's table it reduces no such arrays")
        )
        refused = "rank 1 refused the arguments. rank 1: op BAND does not reduce float64"
        assert told.pop("refused by one").startswith("op BAND does not" if rank == 1 else refused)
        assert told == {
            "in place on one": "send differs between ranks: rank 1 has MPI.IN_PLACE; but ranks 0, 2 have an array",
            "complex MAX": "op MAX does not reduce complex128; by MPI's table it reduces integers and floats",
            "two groups": "comm must have one group of ranks, but is an inter-communicator",
        }


def test_the_script_explains_itself():
    assert "--ranks-per-node" in mpirun(SCRIPT, 1, "--help", timeout=60)[0]


@pytest.mark.parametrize("ranks", [4, pytest.param(8, marks=pytest.mark.soak)])
def test_shared_memory_agrees_with_native_where_every_rank_has_cores_of_its_own(ranks):
    """There powers of two reduce by halves, and a second thread copies. All operations, commutative or not."""

    def agree(comm):
        board.own_cores = lambda: set(range(99))
        others = [name for names in ALGORITHMS.values() for name in names if name != "shared_memory"]
        return verify.verify(
            comm, ("allreduce", "alltoall"), (1000, 9001, 300_007), ("float64", "complex128"), left_out=others
        )

    count, first_that_differs = run_on_ranks(agree, ranks, timeout=60)[0]
    assert count > 30 and first_that_differs is None


@pytest.mark.parametrize("cores", [1, 99])
@pytest.mark.parametrize("ranks", [3, 4])
def test_shared_memory_over_many_calls_and_sizes(ranks, cores):
    """Calls of all kinds one after the other: nothing is overwritten while another rank still reads it."""

    def many(comm):
        board.own_cores = lambda: set(range(cores))
        wrong = []
        random = np.random.default_rng(0)  # the same on every rank
        block = segment.BLOCK_BYTES // 8
        sizes = [1, 600, 3000, 5000, block // 4, block - 1, block + 3, 3 * block]  # the short ones more often
        for turn in range(120):
            n = int(random.choice(sizes, p=[0.2, 0.2, 0.2, 0.2, 0.05, 0.05, 0.05, 0.05]))
            send = np.arange(n) + comm.Get_rank() * turn
            recv = np.empty_like(send)
            if random.integers(2):
                allreduce(comm, send, recv, None, "shared_memory", validate=False)
                expected = np.arange(n) * comm.size + turn * sum(range(comm.size))
            else:
                send, recv = np.tile(send, comm.size), np.empty(n * comm.size, send.dtype)
                alltoall(comm, send, recv, "shared_memory", validate=False)
                expected = np.concatenate([np.arange(n) + rank * turn for rank in range(comm.size)])
            if not np.array_equal(recv, expected):
                wrong.append((turn, n))  # and go on: the other ranks wait for this one
        return wrong

    assert run_on_ranks(many, ranks, timeout=60) == [[]] * ranks


def test_a_message_on_its_way_does_not_hold_up_shared_memory():
    """Rank 0 waits in the collective for rank 1, which waits for its long message to leave to rank 0."""

    def call(comm):
        allreduce(comm, np.ones(8), np.empty(8), algorithm="shared_memory")
        data = np.zeros(2**20)
        if comm.rank == 0:
            request = comm.Irecv(data, 1)
        else:
            comm.Send(data + 1, 0)
        recv = np.empty(8)
        allreduce(comm, np.ones(8), recv, algorithm="shared_memory", validate=False)
        if comm.rank == 0:
            request.Wait()
        return recv[0], data[-1]

    assert run_on_ranks(call, 2, timeout=100) == [(2, 1), (2, 0)]


def test_a_communicator_is_freed_with_what_it_keeps():
    def call(comm):
        results = []
        for ranks_per_node in (None, 2) * 5:
            mine = comm.Dup()
            algorithm = "shared_memory"
            if ranks_per_node:
                pretend_nodes(mine, ranks_per_node)
                algorithm = "hierarchical"
            recv = np.empty(1000)
            allreduce(mine, np.ones(1000), recv, algorithm=algorithm)
            results.append(recv.sum())
            mine.Free()
        return results

    assert run_on_ranks(call, 4, timeout=100) == [[4000.0] * 10] * 4


def _errors(comm):
    """What is refused only where there is MPI: a list of messages."""
    from mpi4py import MPI

    data, recv = np.ones(8), np.empty(8)
    first = MPI.Op.Create(lambda a, b, datatype: None, commute=False)
    freed, freed_op = comm.Dup(), MPI.Op.Create(lambda a, b, datatype: None, commute=True)
    freed.Free()
    freed_op.Free()
    nodes = comm.Dup()
    pretend_nodes(nodes, 1)
    messages = []
    for call in (
        lambda: allreduce(freed, data, recv),
        lambda: allreduce(comm, data, recv, freed_op),
        lambda: allreduce(comm, data, recv, first, "ring"),
        lambda: reduce_scatter(comm, data, recv[:4], first, "recursive_halving"),
        lambda: reduce_scatter(comm, data, recv[:4], first, "auto"),
        lambda: allreduce(comm, data, recv, MPI.BAND, "ring"),
        lambda: allreduce(nodes, data, recv, algorithm="shared_memory"),
        lambda: pretend_nodes(nodes, 2),
        lambda: pretend_nodes(comm.Dup(), 0),
        lambda: allreduce(comm, data[: 8 - comm.rank], recv[: 8 - comm.rank], algorithm="shared_memory"),
        lambda: allreduce(comm, MPI.IN_PLACE, recv[: 8 - comm.rank], algorithm="native"),
        lambda: allreduce(CountingComm(comm), data, recv, algorithm="shared_memory"),
    ):
        try:
            call()
            messages.append("nothing")
        except (TypeError, ValueError) as error:
            messages.append(str(error))
    return messages


def test_errors():
    expected = [
        "comm has been freed",
        "op has been freed",
        "op is not commutative, and algorithm 'ring' changes the order of operands",
        "op is not commutative, and algorithm 'recursive_halving' changes",
        "op is not commutative, and algorithm 'auto' changes",
        "op BAND does not reduce float64",
        "algorithm 'shared_memory' needs all ranks of comm on one node, but they are on 2",
        "comm's nodes are known already",
        "ranks_per_node must be at least 1, but is 0",
        "size of send differs between ranks: rank 1 has 7; but rank 0 has 8",
        "size of recv differs between ranks: rank 1 has 7; but rank 0 has 8",
        "comm must be an MPI communicator for algorithm 'shared_memory', not a CountingComm",
    ]
    for messages in run_on_ranks(_errors, 2, timeout=100):
        assert len(messages) == len(expected)
        for message, beginning in zip(messages, expected, strict=True):
            assert message.startswith(beginning)


def test_a_refusal_stops_the_others_before_anything_is_chosen():
    """'auto' looks at the nodes, which is a collective call itself: nobody may be left in it."""

    def call(comm):
        send, recv = np.zeros(8), np.empty(8 if comm.rank else 7)
        try:
            allreduce(comm.Dup(), send, recv, algorithm="auto")
        except ValueError as error:
            return str(error)

    first, second = run_on_ranks(call, 2, timeout=100)
    assert first.startswith("recv has 7 elements") and second.startswith("rank 0 refused the arguments")


def test_messages_on_real_ranks_are_those_of_practice_ranks():
    def count(comm):
        counting = CountingComm(comm)
        allreduce(counting, np.zeros(6), np.empty(6), None, "ring", validate=False)
        return counting.messages_sent, counting.bytes_sent

    assert run_on_ranks(count, 3, timeout=100) == [(4, 64)] * 3


def test_the_verification_s_own_maps_do_not_commute():
    x, y = np.array([-1 + 2j]), np.array([1 + 3j])
    xy, yx = y.copy(), x.copy()
    verify._compose(x, xy, None)
    verify._compose(y, yx, None)
    assert xy[0] == -1 - 1j and yx[0] == -1 + 5j
