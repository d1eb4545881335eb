"""Check exercise 7 of lab 06: the results, barriers and work of an all-reduce in shared memory."""

import time
from functools import partial

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks import vectors
from labs_helpers.collectives.lab06.checks.late_ranks import DELAY_S, LateComm
from labs_helpers.collectives.lab06.checks.on_ranks import on_ranks, on_real_ranks
from labs_helpers.collectives.lab06.checks.vectors import UNEVEN, WrongElement, tagged, unwritten
from labs_helpers.collectives.lab06.shared_matrix import shared_matrix
from labs_helpers.collectives.lab06.watched_op import WatchedOp
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong

CALLS = 3
NEXT = "the next call wrote a row while other ranks were still collecting: a barrier is missing at the end of the call"
STALE = -(2.0**45)  # what lies in the shared matrix before anybody has written there


@exercise("06/7", "challenge: shared memory", points=15, minutes=25, reference=exercises.shared_memory_allreduce)
def shared_memory_allreduce(student):
    past_op = False
    for case, size, n in (
        ("2 ranks, 8 elements", 2, 8),
        ("5 ranks, 13 elements", 5, 13),
        ("1 rank", 1, 4),
        ("4 ranks, 3 elements, an empty chunk", 4, 3),
    ):
        case, shared = f"{case}, three calls in a row", np.full((size, n), STALE)
        reduced = [[] for _ in range(size)]  # elements, each time
        ops = [WatchedOp(np.add, counts.append) for counts in reduced]
        own = [(shared, send, _blank(CALLS, n), op) for send, op in zip(_sends(size, n), ops, strict=True)]
        there = [False] * size  # whether at a barrier of the first call a rank's vector was in its row
        run = on_ranks(case, student, partial(_watched_calls, there), own)
        if run.messages:
            raise Wrong(case, f"{len(run.messages)} messages were sent; the vectors should go through `shared`")
        vectors.expect_unchanged(case, [send for _, send, _, _ in own], _sends(size, n))
        _expect_results(case, [recv for _, _, recv, _ in own], shared, all(there) or not run.barriers)
        for rank, (start, stop) in enumerate(chunk_bounds(n, size)):
            needed, found = (size - 1) * (stop - start), sum(reduced[rank]) // CALLS
            if found > needed + (stop - start):
                cause = "every rank reduces the whole vector; its own chunk is enough"
                raise Wrong(case, f"rank {rank} reduces {found} elements a call, {needed} are enough.", cause=cause)
        past_op |= sum(map(sum, reduced)) < CALLS * (size - 1) * n
        yield f"{case}: {len(run.barriers) / CALLS:g} barriers each"

    case, shared = vectors.MAXIMUM, np.zeros((4, 10), np.int64)
    own = [(shared, [send], [unwritten(10, np.int64)], np.maximum) for send in vectors.below_zero(4, 10)]
    on_ranks(case, student, _calls, own)
    vectors.expect_maximum(case, [recv for _, _, (recv,), _ in own], [(0, 10)] * 4)
    if past_op:
        raise Wrong(case, "the values are right, but op reduces fewer elements than needed: pass all to op")
    yield case

    case = "3 real ranks that share memory, one of them late everywhere"
    between_threads = np.full((3, 999), STALE)

    def late_calls(student, comm, sends, recvs):
        return _late_calls(student, comm, between_threads, sends, recvs)

    own = [(send, _blank(2 * CALLS, 999)) for send in _sends(3, 999)]
    recvs = np.array(on_real_ranks(case, student, late_calls, own))
    _expect_results(f"{case}, here rank 0", recvs[:, :CALLS])
    _expect_results(f"{case}, here rank 2", recvs[:, CALLS:])
    yield case


def _sends(size: int, n: int) -> list[np.ndarray]:
    """Return each rank's (call, element): tagged, and multiplied by 1, 2 and 4."""
    return [2.0 ** np.arange(CALLS)[:, None] * vector for vector in tagged(size, n)]


def _blank(calls: int, n: int) -> np.ndarray:
    return unwritten(calls * n).reshape(calls, n)


def _calls(student, comm, shared, sends, recvs, op) -> None:
    for send, recv in zip(sends, recvs, strict=True):
        student(comm, shared, send, recv, op)


class _WatchingComm:
    """A communicator that calls `look` at each barrier."""

    def __init__(self, comm, look):
        self._comm, self._look = comm, look

    def Barrier(self) -> None:
        self._look()
        self._comm.Barrier()

    def __getattr__(self, name):
        return getattr(self._comm, name)


def _watched_calls(there: list[bool], student, comm, shared, sends, recvs, op) -> None:
    def look() -> None:
        mine = slice(*chunk_bounds(len(sends[0]), comm.size)[comm.rank])  # where the result may lie by then
        others = np.delete(shared[comm.rank] == sends[0], mine)
        there[comm.rank] |= bool(others.any() or not others.size)

    _calls(student, _WatchingComm(comm, look), shared, sends[:1], recvs[:1], op)
    _calls(student, comm, shared, sends[1:], recvs[1:], op)


def _late_calls(student, comm, shared, sends, recvs) -> np.ndarray:
    """Run all calls with rank 0 late, then all with the last rank late; return recvs. shared: for ranks that are
    threads; processes create their own matrix."""
    window = None
    if type(comm).__module__.startswith("mpi4py"):
        shared, window = shared_matrix(comm, sends.shape[1], np.float64)
    for late_rank, results in ((0, recvs[:CALLS]), (comm.size - 1, recvs[CALLS:])):
        shared[comm.rank] = STALE
        own_comm, op = comm, np.add
        if comm.rank == late_rank:
            own_comm, op = LateComm(comm), WatchedOp(np.add, lambda elements: time.sleep(DELAY_S))
        own_comm.Barrier()
        _calls(student, own_comm, shared, sends, results, op)
        comm.Barrier()
    if window is not None:
        window.Free()
    return recvs


def _expect_results(case: str, recvs, shared=None, filled: bool = True) -> None:
    """Raise Wrong for wrong results. recvs: each rank's (call, element). shared: after the last call of practice
    ranks, which take turns in their order. filled: True if every rank's vector was in its row at some barrier."""
    size, _, n = np.shape(recvs)
    for call in range(CALLS):
        found, of_call = np.array(recvs)[:, call] / 2.0**call, f"{case}, call {call}"
        # Each rank's own chunk first: it tells about the reduction.
        reduction = partial(_reduction_cause, found, shared, filled)
        vectors.expect_sum(of_call, found, chunk_bounds(n, size), otherwise=reduction)
        vectors.expect_sum(of_call, found, [(0, n)] * size, otherwise=partial(_collection_cause, found, shared))


def _reduction_cause(found, shared, filled: bool, wrong: WrongElement) -> str:
    """Return the cause of a wrong element in a rank's own chunk."""
    if not filled:
        return "at no barrier is a rank's vector in its row: write shared[comm.rank] = send before the barrier"
    if wrong.parts and set(wrong.parts) <= {0, 2} and not wrong.is_own(wrong.rank, 2):
        return NEXT
    # A part that is in it twice may be the next call's, which says nothing of where chunks lie.
    if shared is not None and (cause := _place_cause(found, None if 2 in wrong.parts else shared, wrong.chunk)):
        return cause
    if np.isnan(wrong.value):
        return UNEVEN if wrong.uneven else "it is not collected into recv"
    if not wrong.parts:
        return "a rank reduces before all ranks have written their rows: a barrier is missing before the reduction"
    if wrong.is_own(wrong.rank):
        return "no other row was reduced into it, or the result was not collected from where it was stored"
    return "the loop leaves out a row, or takes one twice; or a row was overwritten before another rank had read it"


def _place_cause(found, shared, chunk: int) -> str:
    """Return the cause if the reduced chunks were stored in a wrong place, or not collected from where they are."""
    size, n = found.shape
    places = [slice(*bounds) for bounds in chunk_bounds(n, size)]
    rows, total = np.array(tagged(size, n)), sum(tagged(size, n))
    for row in rows:  # in its turn, each rank puts the sum of whole rows over its own
        row[:] = rows.sum(0)
    if all(np.array_equal(found[rank, mine], rows[rank, mine]) for rank, mine in enumerate(places)):
        return "each rank overwrites its whole row, which the others still read; only chunk r of row r is free"
    if shared is None:
        return ""
    finished = _finished(shared, places[chunk], total)
    if finished[chunk]:
        return f"chunk {chunk} lies finished in row {chunk} of shared, and was not collected from there"
    elsewhere = f"chunk {chunk} lies finished in row {finished.argmax()} of shared, and is collected from another"
    return f"{elsewhere}: put a result where it is collected" if finished.any() else ""


def _finished(shared, place: slice, total) -> np.ndarray:
    """Return the rows that hold a chunk of the last call's sum."""
    return (shared[:, place] == 2.0 ** (CALLS - 1) * total[place]).all(1)


def _collection_cause(found, shared, wrong: WrongElement) -> str:
    """Return the cause of a wrong element in another rank's chunk, if all ranks have their own."""
    if set(wrong.parts) == {2} or wrong.is_own(wrong.chunk, 2):
        return NEXT
    if wrong.uneven:
        return UNEVEN
    if np.isnan(wrong.value):
        return "it is not collected into recv"
    size, n = found.shape
    place = slice(*chunk_bounds(n, size)[wrong.chunk])
    in_own_row = shared is not None and _finished(shared, place, sum(tagged(size, n)))[wrong.rank]
    if wrong.is_own(wrong.rank) and not in_own_row:
        return "each rank collects from its own row; chunk r is in row r"
    if wrong.parts:
        return "a rank collects chunks before they are reduced: a barrier is missing after the reduction"
    return "the chunk was not collected from its rank's row, or was overwritten there"
