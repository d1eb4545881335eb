"""What proves an exercise of lab 06 right: the first two here, the others by name."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives import lesson
from labs_helpers.collectives.check_cost import fit_cost
from labs_helpers.collectives.check_exchange import pairwise_alltoall
from labs_helpers.collectives.check_halving import recursive_halving
from labs_helpers.collectives.check_ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.check_rings import ring_allreduce, ring_reduce_scatter
from labs_helpers.collectives.check_shared import shared_memory_allreduce
from labs_helpers.collectives.check_values import (
    arguments,
    below_zero,
    expect_equal,
    expect_maximum,
    expect_sum,
    expect_unchanged,
    tagged,
    unwritten,
)
from labs_helpers.course.exercise import exercise
from labs_helpers.course.scoreboard import summary
from labs_helpers.course.wrong import Wrong

__all__ = ["fit_cost", "naive_allreduce", "pairwise_alltoall", "recursive_halving", "ring_allreduce",
           "ring_reduce_scatter", "ring_shift", "shared_memory_allreduce", "summary"]


@exercise("06/1", "ring shift", points=5, minutes=10, reference=lesson.ring_shift)
def ring_shift(student):
    for size in (2, 4, 3, 5, 8, 1):
        case = f"{size} ranks" if size > 1 else "1 rank, its own neighbour"
        sends, recvs = _numbered(size), [unwritten(6) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs))
        _expect_shifted(case, recvs, _numbered(size))
        expect_unchanged(case, sends, _numbered(size))
        if size > 1 and run.messages_sent != [1] * size:
            raise Wrong(case, f"the ranks sent {run.messages_sent} messages; one each is enough")
        yield case
    case = "the same function on 3 real ranks"
    left = on_real_ranks(case, student, arguments(_numbered(3), unwritten(6)))
    _expect_shifted(case, [recv for _, recv in left], _numbered(3))
    yield case


def _numbered(size: int) -> list[np.ndarray]:
    """Rank r's block is 100·r + (0 … 5)."""
    return [100.0 * rank + np.arange(6) for rank in range(size)]


def _expect_shifted(case: str, recvs, sends) -> None:
    size = len(sends)
    for rank, recv in enumerate(recvs):
        expect_equal(case, rank, recv, sends[rank - 1], {
            "nothing was received: recv is as it was": unwritten(len(recv)),
            "it is the rank's own block": sends[rank],
            "it is the block of the rank on the right: the blocks travel the wrong way": sends[(rank + 1) % size]})


@exercise("06/2", "naive all-reduce", points=10, minutes=15, reference=lesson.naive_allreduce)
def naive_allreduce(student):
    for case, size, n in (("3 ranks, 5 elements", 3, 5), ("2 ranks, 7 elements", 2, 7), ("5 ranks, 6 elements", 5, 6),
                          ("1 rank", 1, 4), ("4 ranks, nothing to reduce", 4, 0)):
        sends, recvs = tagged(size, n), [unwritten(n) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs, np.add))
        expect_sum(case, recvs, [(0, n)] * size, _why_not_summed)
        expect_unchanged(case, sends, tagged(size, n))
        yield case
    case = "np.maximum, int32, all below zero"
    sends, recvs = below_zero(4, 6), [unwritten(6, np.int32) for _ in range(4)]
    on_practice_ranks(case, student, arguments(sends, recvs, np.maximum))
    expect_maximum(case, recvs, below_zero(4, 6), [(0, 6)] * 4)
    yield case
    nbytes = 8000
    run = on_practice_ranks("5 ranks, 1,000 elements", student,
                            arguments(tagged(5, 1000), [unwritten(1000) for _ in range(5)], np.add))
    if run.bytes_sent[0] != 4 * nbytes or run.bytes_received[0] != 4 * nbytes or max(run.bytes_sent[1:]) != nbytes:
        raise Wrong("5 ranks, 8,000 bytes", f"the root receives {run.bytes_received[0]:,} bytes and sends "
                    f"{run.bytes_sent[0]:,}, the others send {run.bytes_sent[1:]}; expected 32,000, 32,000 and 8,000 "
                    "each.\nLikely cause: a rank that is not the root sends to more than the root, or the root to "
                    "itself.")
    yield "5 ranks, 8,000 bytes: 32,000 go to the root, and 32,000 come from it"
    case = "the same function on 4 real ranks"
    left = on_real_ranks(case, student, arguments(tagged(4, 1000), unwritten(1000), np.add))
    expect_sum(case, [recv for _, recv, _ in left], [(0, 1000)] * 4, _why_not_summed)
    yield case


def _why_not_summed(faults, results) -> str:
    first = faults[0]
    if first.rank:  # the root has it
        return ("the result is not sent back to the others." if first.kind == "unwritten" else
                "what comes back to the others is not the finished result.")
    if first.kind == "unwritten":
        return "the root puts nothing into its recv."
    if first.missing == (0,):
        return "the root's own part is forgotten."
    if first.repeated == (0,):
        return "the root's own part is added twice."
    if first.missing:
        return "the root's loop does not reach every rank, or each vector replaces the one before."
    return "a part is added twice." if first.repeated else ""
