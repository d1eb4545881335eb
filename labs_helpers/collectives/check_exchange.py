"""What proves exercise 5 of lab 06 right: who gets which block, in how many messages and steps."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives import lesson
from labs_helpers.collectives.check_ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.check_rings import told_sent
from labs_helpers.collectives.check_values import arguments, expect_unchanged, unwritten
from labs_helpers.course.exercise import exercise
from labs_helpers.course.wrong import Wrong


@exercise("06/5", "all-to-all", points=10, minutes=15, reference=lesson.pairwise_alltoall)
def pairwise_alltoall(student):
    for size, length in ((2, 3), (4, 2), (3, 2), (5, 3), (7, 1), (1, 4), (3, 0)):
        case = f"{size} rank{'s' * (size > 1)}, blocks of {length}"
        sends, recvs = _blocks(size, length), [unwritten(size * length) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs))
        _expect_exchanged(case, recvs, size, length)
        expect_unchanged(case, sends, _blocks(size, length))
        _expect_pairwise(case, run, size, 8 * length)
        yield f"{case}: {told_sent(run)}"
    case = "the same function on 3 real ranks"
    left = on_real_ranks(case, student, arguments(_blocks(3, 100), unwritten(300)))
    _expect_exchanged(case, [recv for _, recv in left], 3, 100)
    yield case


def _blocks(size: int, length: int) -> list[np.ndarray]:
    """Block j of rank r is full of 100·r + j, with the element's place behind the point."""
    place = np.tile(np.arange(length) / 1024, size)
    return [100.0 * rank + np.repeat(np.arange(size), length) + place for rank in range(size)]


def _expect_exchanged(case: str, recvs, size: int, length: int) -> None:
    whole = np.stack(_blocks(size, length)).reshape(size, size, length)
    for rank, recv in enumerate(recvs):
        for block, got in enumerate(recv.reshape(size, length)):
            if np.array_equal(got, whole[block, rank]):
                continue
            if np.isnan(got).any():
                raise Wrong(case, f"block {block} of rank {rank} was never written.\nLikely cause: " + (
                    "one's own block is forgotten; it needs no message, but it has to be copied." if block == rank
                    else "a step too few, or blocks that land on top of one another."))
            source, of = divmod(int(got[0]), 100)
            raise Wrong(case, f"block {block} of rank {rank} holds rank {source}'s block {of}, expected rank {block}'s "
                        f"block {rank}.\nLikely cause: {_why_not_exchanged(rank, block, source, of)}")


def _why_not_exchanged(rank: int, block: int, source: int, of: int) -> str:
    if source == block:
        return "the wrong block is sent: block j of send is for rank j."
    if of == rank:
        return "the block arrives in the wrong place: what comes from rank i is block i of recv."
    return "sender and receiver do not mean the same step."


def _expect_pairwise(case: str, run, size: int, nbytes: int) -> None:
    for rank in range(size):
        sent = sorted((m for m in run.messages if m.source == rank), key=lambda m: m.send_time)
        if any(m.dest == rank for m in sent):
            raise Wrong(case, f"rank {rank} sends itself a message; its own block is copied")
        if len(sent) != size - 1 or sum(m.nbytes for m in sent) != (size - 1) * nbytes:
            raise Wrong(case, f"rank {rank} sends {len(sent)} messages, {sum(m.nbytes for m in sent)} bytes; "
                        f"{size - 1} of {nbytes} bytes are needed.\nLikely cause: everything is sent to everybody, "
                        "or blocks travel by way of another rank.")
    if run.steps > size:  # in pairs i + j = step a rank that meets itself rests
        raise Wrong(case, f"it takes {run.steps} steps, {size - 1} are enough.\nLikely cause: everybody sends to rank "
                    "0 first, then to rank 1, so that they queue up for one receiver; each has to start elsewhere.")
