"""What proves exercise 7 of lab 06 right: results, barriers and work of an all-reduce in shared memory."""

from __future__ import annotations

import itertools
import time

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks.late_ranks import DELAY_S, CountedOp, LateComm
from labs_helpers.collectives.lab06.checks.ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.lab06.checks.values import (
    arguments,
    below_zero,
    expect_maximum,
    expect_unchanged,
    read,
    tagged,
    unwritten,
)
from labs_helpers.collectives.lab06.shared_matrix import shared_matrix
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong

CALLS = 3
STALE = -(2.0**45)  # what lies in the shared matrix before anybody has written there


@exercise("06/7", "challenge: shared memory", points=15, minutes=25, reference=exercises.shared_memory_allreduce)
def shared_memory_allreduce(student):
    for case, size, n in (
        ("2 ranks, 8 elements", 2, 8),
        ("5 ranks, 13 elements", 5, 13),
        ("1 rank", 1, 4),
        ("4 ranks, 3 elements, an empty chunk", 4, 3),
    ):
        case = f"{case}, three calls in a row"
        shared, sends = np.full((size, n), STALE), _sends(size, n)
        recvs = [[unwritten(n) for _ in range(CALLS)] for _ in range(size)]
        ops = [CountedOp(np.add) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments([shared] * size, sends, recvs, ops), _calls)
        if run.messages:
            raise Wrong(case, f"{len(run.messages)} messages were sent; the vectors go through `shared`")
        for rank in range(size):
            expect_unchanged(case, sends[rank], _sends(size, n)[rank])
        _expect_results(case, recvs, size, n, shared)
        _expect_shared_work(case, ops, size, n)
        yield f"{case}: {len(run.barriers) / CALLS:g} barriers each"
    case = "np.maximum, int32, all below zero"
    sends, recvs = below_zero(4, 10), [unwritten(10, np.int32) for _ in range(4)]
    shared = np.zeros((4, 10), np.int32)
    on_practice_ranks(
        case, student, arguments([shared] * 4, [[s] for s in sends], [[r] for r in recvs], np.maximum), _calls
    )
    expect_maximum(case, recvs, below_zero(4, 10), [(0, 10)] * 4)
    yield case
    case = "3 real ranks that share memory, one of them late everywhere"
    results = [unwritten(1000) for _ in range(2 * CALLS)]
    left = on_real_ranks(case, student, arguments(_sends(3, 1000), [results] * 3), _late_calls)
    for late in range(2):
        _expect_results(f"{case}: rank {2 * late}", [recvs[late * CALLS :][:CALLS] for _, recvs in left], 3, 1000)
    yield case


def _sends(size: int, n: int) -> list[list[np.ndarray]]:
    """A list a rank, with a vector for each call: tagged, and times 1, 2 and 4."""
    return [[2.0**call * vector for call in range(CALLS)] for vector in tagged(size, n)]


def _calls(student, comm, shared, sends, recvs, op) -> None:
    for send, recv in zip(sends, recvs, strict=True):
        student(comm, shared, send, recv, op)


def _late_calls(student, comm, sends, recvs) -> None:
    """All calls with rank 0 late, then all with the last rank late."""
    shared, window = shared_matrix(comm, len(sends[0]), np.float64)
    for number, late_rank in enumerate((0, comm.size - 1)):
        late = comm.rank == late_rank
        shared[comm.rank] = STALE
        comm.Barrier()
        if late:
            time.sleep(DELAY_S)
        _calls(student, LateComm(comm, late), shared, sends, recvs[number * CALLS :][:CALLS], CountedOp(np.add, late))
        comm.Barrier()
    window.Free()


def _expect_results(case: str, recvs, size: int, n: int, shared=None) -> None:
    """recvs: for each rank the result of each call. Each rank's own chunk comes first: it tells about the reduction.

    shared: as the last call of practice ranks, which take turns in their order, left it.
    """
    bounds = chunk_bounds(n, size)
    own = [(rank, rank) for rank in range(size)]
    places = own + [(rank, chunk) for rank in range(size) for chunk in range(size) if rank != chunk]
    for call in range(CALLS):
        expected = 2.0**call * sum(tagged(size, n))
        for rank, chunk in places:
            start, stop = bounds[chunk]
            wrong = np.flatnonzero(recvs[rank][call][start:stop] != expected[start:stop])
            if wrong.size:
                element = start + int(wrong[0])
                value = recvs[rank][call][element]
                said = read(value / 2.0**call, size, element)[1]
                why = None
                if shared is not None and chunk == rank:
                    why = _why_overwritten(recvs, size, n) or _why_in_another_row(shared, chunk, size, n)
                why = why or _why(call, rank, chunk, element, value, size, n)
                raise Wrong(case, f"call {call}, rank {rank}, element {element} (chunk {chunk}): {said}.\n{why}")


def _why_overwritten(recvs, size: int, n: int) -> str | None:
    """Whether each rank, in its turn, put its sum of whole rows over the row that the next ones still read."""
    rows = np.array(tagged(size, n))
    for rank in range(size):
        rows[rank] = rows.sum(0)
    own = [(rank, slice(*bounds)) for rank, bounds in enumerate(chunk_bounds(n, size))]
    if size > 1 and all(np.array_equal(recvs[rank][0][mine], rows[rank, mine]) for rank, mine in own):
        return (
            "Likely cause: each rank writes its result over its whole row, which the others still read for their "
            "chunks; in row r only chunk r is free."
        )
    return None


def _why_in_another_row(shared, chunk: int, size: int, n: int) -> str | None:
    """Whether the reduced chunk lies in shared, in the row of its number or in another."""
    mine = slice(*chunk_bounds(n, size)[chunk])
    expected = 2.0 ** (CALLS - 1) * sum(tagged(size, n))[mine]
    found = [row for row in range(size) if np.array_equal(shared[row, mine], expected)]
    if not found:
        return None
    if chunk in found:
        return f"Chunk {chunk} lies finished in row {chunk} of shared, and was not collected from there."
    return (
        f"Chunk {chunk} lies finished in row {found[0]} of shared, and is collected from another: put a result "
        "where it is collected."
    )


def _why(call: int, rank: int, chunk: int, element: int, value: float, size: int, n: int) -> str:
    rows = 2.0**call * np.array([vector[element] for vector in tagged(size, n)])
    uneven = "Likely cause: equal chunks are right, these are uneven; chunks of n // size lose the last elements."
    if np.isnan(value):
        return uneven if n % size and n > size else "It is not collected into recv."
    if chunk == rank:
        if not _is_sum(value, rows):
            return (
                "Likely cause: a rank reduces before all have put their rows there: a barrier is missing before "
                "the reduction."
            )
        if value == rows[rank]:
            return (
                f"It is rank {rank}'s own element: no other row was reduced into it, or the result was put "
                "somewhere else than where it is collected."
            )
        return (
            "The sum leaves out a row, or takes one twice: the loop over the rows does, or a row was written while "
            "another rank was still to read it."
        )
    if value in (2 * rows[chunk], 2 * rows.sum()):
        return (
            "Likely cause: the next call wrote a row while others were still collecting: a barrier is missing at "
            "the end of a call."
        )
    if n % size and n > size:
        return uneven
    if value == rows[rank]:
        return "Likely cause: each rank collects from its own row; chunk r lies in row r."
    if value == rows[chunk] or _is_sum(value, rows):
        return (
            "Likely cause: a rank collects chunks that are not reduced yet: a barrier is missing after the reduction."
        )
    return "The chunk was not collected from its rank's row, or what lay there was overwritten."


def _is_sum(value: float, rows) -> bool:
    """Whether `value` is a sum of some of the rows, each at most twice."""
    return any(value == np.dot(times, rows) for times in itertools.product((0, 1, 2), repeat=len(rows)))


def _expect_shared_work(case: str, ops, size: int, n: int) -> None:
    for rank, (op, (start, stop)) in enumerate(zip(ops, chunk_bounds(n, size), strict=True)):
        needed = CALLS * (size - 1) * (stop - start)
        if op.reduced > needed + CALLS * (stop - start):
            raise Wrong(
                case,
                f"rank {rank} reduces {op.reduced // CALLS} elements a call, {needed // CALLS} are "
                "enough.\nLikely cause: every rank reduces the whole vector; its own chunk is enough.",
            )
