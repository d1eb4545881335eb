"""Test remembered validated all-reduces: they are right, still compared between ranks, and freed with their
communicator."""

import numpy as np
import pytest

from labs_helpers.launch.mpirun import run_on_ranks


def told_after_good_calls(comm):
    """What each rank is told of calls that differ once others like them are remembered; and whether sums stay right."""
    from mpi4py import MPI

    from labs_helpers.collectives import allgather, allreduce, alltoall, broadcast

    last = comm.rank == comm.size - 1
    total = sum(range(1, comm.size + 1))

    def ours(n=8, dtype="float64", **how):
        recv = np.zeros(n, dtype)
        allreduce(comm, np.full(n, comm.rank + 1, dtype), recv, **how)
        return recv

    def good(sizes=(8, 9, 20_000)):
        right = all((ours(n) == total).all() for n in sizes for _ in range(2))
        right &= (ours(algorithm="ring") == total).all() and (ours(op=MPI.MAX) == comm.size).all()
        return bool(right and (ours(dtype="float32") == total).all())

    def in_place(n=8):
        recv = np.full(n, comm.rank + 1.0)
        allreduce(comm, MPI.IN_PLACE, recv)
        return recv

    unmoved = np.full(8, -1.0)
    calls = {
        "size": lambda: ours(9 if last else 8),
        "blocks": lambda: ours(300_000 if last else 8),
        "slices": lambda: ours(40_000 if last else 3000),
        "dtype": lambda: ours(dtype="float32" if last else "float64"),
        "op": lambda: ours(op=MPI.MAX if last else None),
        "algorithm": lambda: ours(algorithm="ring" if last else "auto"),
        "in place": lambda: in_place() if last else ours(),
        "new to all": lambda: ours(17 if last else 16),
        "new to one": lambda: ours(18 if last else 8),
        "broadcast": lambda: broadcast(comm, np.zeros(8)) if last else ours(),
        "alltoall": lambda: ours() if last else alltoall(comm, np.zeros(8 * comm.size), np.zeros(8 * comm.size)),
        "refused": lambda: allreduce(comm, np.zeros(16)[::2] if last else np.zeros(8), unmoved),
        "read-only": lambda: allreduce(comm, np.zeros(8), np.zeros(8).view() if not last else locked()),
        "overlap": lambda: allreduce(comm, unmoved, unmoved) if last else ours(),
    }

    def locked():
        array = np.zeros(8)
        array.flags.writeable = False
        return array

    found = {"at first": good((8, 3000, 40_000, 300_000))}  # whole, by slices, in one block and in several
    for name, call in calls.items():
        try:
            call()
            found[name] = "nothing"
        except ValueError as error:
            found[name] = str(error)
        found[f"after {name}"] = good() and bool((in_place() == total).all())
    found["unmoved"] = bool((unmoved == -1).all())
    gathered = np.empty(comm.size)
    allgather(comm, np.array([float(comm.rank)]), gathered)
    return found, gathered.tolist()


@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.soak) for ranks in (2, 4, 8))])
def test_a_difference_is_told_though_the_call_is_remembered(ranks):
    alike = {
        "size": "size of send differs between ranks",
        "blocks": "size of send differs between ranks",
        "slices": "size of send differs between ranks",
        "dtype": "dtype of send differs between ranks",
        "op": "op differs between ranks",
        "algorithm": "algorithm differs between ranks",
        "in place": "send differs between ranks",
        "new to all": "size of send differs between ranks",
        "new to one": "size of send differs between ranks",
        "broadcast": "function differs between ranks",
        "alltoall": "function differs between ranks",
    }
    own = {
        "refused": "send must be contiguous",
        "read-only": "recv is written to, but is read-only",
        "overlap": "recv overlaps send",
    }
    refused = f"rank {ranks - 1} refused the arguments"
    for rank, (found, gathered) in enumerate(run_on_ranks(told_after_good_calls, ranks, timeout=60)):
        assert gathered == list(range(ranks))
        right = [name for name in found if name.startswith(("at first", "after ", "unmoved"))]
        assert all(found.pop(name) for name in right)
        expected = alike | (own if rank == ranks - 1 else dict.fromkeys(own, refused))
        assert list(found) == list(expected)
        for name, beginning in expected.items():
            assert found[name].startswith(beginning), name


def other_calls(comm):
    """What goes well on all ranks: a list of whether it did."""
    import gc
    import threading
    import weakref

    from mpi4py import MPI

    from labs_helpers.collectives import allreduce, remembered
    from labs_helpers.collectives.shared_memory.board import CALLS

    total = sum(range(comm.size))

    def right(comm, shape=(6,), dtype="int64", op=None, **how):
        recv = np.full(shape, 99, dtype)
        allreduce(comm, np.full(shape, comm.rank, dtype), recv, op, **how)
        return bool((recv == total).all())

    found = {}
    # None, MPI.SUM and np.add are one operation; a rank remembers them apart.
    found["other histories"] = all(
        right(comm, op=(None, MPI.SUM, np.add)[(comm.rank * turn + turn) % 3]) for turn in range(12)
    )
    found["shapes"] = all(right(comm, shape) for shape in ((), (0,), (2, 3), (1, 1, 5), (6,)) for _ in range(3))
    found["one remembers"] = right(comm, (2, 3) if comm.rank else (6,)) and right(comm, (77,)) and right(comm, (77,))
    found["both ways"] = all(
        right(comm, (n,), validate=False) and right(comm, (n,)) for n in (6, 9000) for _ in range(3)
    )
    found["kinds of arrays"] = all(right(comm, dtype=kind) for kind in ("uint8", "float16", "complex64") * 2)
    alone = comm.Split(comm.rank)
    recv = np.empty(3)
    for _ in range(3):
        allreduce(alone, np.arange(3.0), recv)
    found["alone"] = recv.tolist() == [0, 1, 2]

    class Held(np.ndarray):
        pass

    send, recv = np.ones(31).view(Held), np.empty(31)
    seen = weakref.ref(send), weakref.ref(recv)
    allreduce(comm, send, recv)
    allreduce(comm, send, recv)
    found["an array of another class"] = recv.tolist() == [comm.size] * 31
    del send, recv
    gc.collect()
    found["no array is kept"] = [ref() for ref in seen] == [None, None]

    own_op = MPI.Op.Create(
        lambda a, b, _: np.frombuffer(b, np.int64).__iadd__(np.frombuffer(a, np.int64)), commute=True
    )
    remember = len(CALLS[comm.handle])
    found["an op of its own"] = right(comm, op=own_op) and right(comm, op=own_op)
    found["is not remembered"] = len(CALLS[comm.handle]) == remember
    own_op.Free()

    remembered.MOST = 5
    found["many sizes"] = all(right(comm, (n % 9,)) for n in range(40)) and len(CALLS[comm.handle]) <= 5

    before = len(CALLS)
    for _ in range(4):
        again = comm.Dup()
        found["a new communicator"] = right(again) and right(again) and right(again, algorithm="native")
        handle = again.handle
        found["knows its own"] = len(CALLS[handle]) == 2
        again.Free()
        found["freed"] = handle not in CALLS and len(CALLS) == before
    try:
        allreduce(again, np.ones(6), np.empty(6))
        found["freed is told"] = False
    except ValueError as error:
        found["freed is told"] = str(error).startswith("comm has been freed")

    if MPI.Query_thread() == MPI.THREAD_MULTIPLE:
        mine, results = [comm.Dup() for _ in range(2)], []
        for one in mine:
            right(one)
        threads = [
            threading.Thread(target=lambda one=one: results.append(all(right(one, (5 + i % 3,)) for i in range(30))))
            for one in mine
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found["threads"] = results == [True, True]
    return [name for name, good in found.items() if not good]


def drawn_numbers(comm):
    """Whether `agree` says the right thing over many turns, with meetings between them."""
    from labs_helpers.collectives.shared_memory.board import board_of

    board, random, wrong = board_of(comm), np.random.default_rng(0), []  # the same draws on every rank
    for turn in range(400):
        numbers = random.choice([0, 1, 2**56], comm.size) if random.random() < 0.4 else np.full(comm.size, turn % 7)
        alike = bool(numbers.min() == numbers.max() > 0)
        if board.agree(int(numbers[comm.rank])) != alike:
            wrong.append(turn)
        if not alike:
            comm.Barrier()  # as in agreement.py, where the ranks go on to tell each other
        elif random.random() < 0.5:
            board.meet(board.others)
    return wrong


@pytest.mark.parametrize("ranks", [3, *(pytest.param(ranks, marks=pytest.mark.soak) for ranks in (1, 2, 8))])
def test_what_is_remembered_is_right_and_goes_with_its_communicator(ranks):
    both = run_on_ranks(lambda comm: (drawn_numbers(comm), other_calls(comm)), ranks, timeout=60)
    assert both == [([], [])] * ranks
