"""What proves an exercise of lab 06 right: the first two here, the others by name."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks.ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.lab06.checks.values import (
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
from labs_helpers.course.verdict.wrong import Wrong


@exercise("06/1", "ring shift", points=5, minutes=10, reference=exercises.ring_shift)
def ring_shift(student):
    for case, size, block in [
        *((f"{size} ranks", size, np.arange(6.0)) for size in (2, 4, 3, 5, 8)),
        ("1 rank, its own neighbour", 1, np.arange(6.0)),
        ("3 ranks, int64 beyond 2**53", 3, 2**60 + np.arange(6)),
        ("3 ranks, float64 that no float32 holds", 3, np.arange(6.0) + 1 / 3),
    ]:
        sends, recvs = _numbered(size, block), [unwritten(6, block.dtype) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs))
        _expect_shifted(case, sends, recvs, _numbered(size, block))
        if size > 1 and run.messages_sent != [1] * size:
            raise Wrong(case, f"the ranks sent {run.messages_sent} messages; one each is enough")
        yield case
    case = "the same function on 3 real ranks"
    left = on_real_ranks(case, student, arguments(_numbered(3, np.arange(6.0)), unwritten(6)))
    _expect_shifted(case, *zip(*left, strict=True), _numbered(3, np.arange(6.0)))
    yield case


def _numbered(size: int, block) -> list[np.ndarray]:
    """Rank r's block is 100·r + block."""
    return [100 * rank + block for rank in range(size)]


def _expect_shifted(case: str, sends, recvs, blocks) -> None:
    """sends, recvs: as the ranks left them; blocks: what they had to send."""
    size, dtype = len(blocks), blocks[0].dtype
    blank = unwritten(6, dtype)
    if all(np.array_equal(vector, blank, equal_nan=dtype.kind == "f") for vector in (*sends, *recvs)):
        raise Wrong(
            case,
            "every rank's send was overwritten, and recv is as it was.\nLikely cause: the two are "
            "swapped: recv is sent, and received into is send.",
        )
    expect_unchanged(case, sends, blocks)
    ways = {"the blocks travel the wrong way: each rank has that of the rank on its right":
                [blocks[(rank + 1) % size] for rank in range(size)],
            "two ranks each exchange their blocks; a ring passes them all on to the right":
                [blocks[(rank ^ 1) % size] for rank in range(size)]}  # fmt: skip
    whole = [cause for cause, expected in ways.items() if size > 2 and np.array_equal(recvs, expected)]
    for rank, recv in enumerate(recvs):
        expect_equal(
            case,
            rank,
            recv,
            blocks[rank - 1],
            {
                **{cause: recv for cause in whole},
                "nothing was received: recv is as it was": blank,
                "it is the rank's own block": blocks[rank],
                "the block has travelled as float32": blocks[rank - 1].astype(np.float32).astype(dtype),
                "the block has travelled as float64": blocks[rank - 1].astype(np.float64).astype(dtype),
            },
        )


@exercise("06/2", "naive all-reduce", points=10, minutes=15, reference=exercises.naive_allreduce)
def naive_allreduce(student):
    for case, size, n in (
        ("3 ranks, 5 elements", 3, 5),
        ("2 ranks, 7 elements", 2, 7),
        ("5 ranks, 6 elements", 5, 6),
        ("1 rank", 1, 4),
        ("4 ranks, nothing to reduce", 4, 0),
    ):
        sends, recvs = tagged(size, n), [unwritten(n) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs, np.add))
        expect_unchanged(case, sends, tagged(size, n))
        expect_sum(case, recvs, [(0, n)] * size, _why_not_summed)
        yield case
    case = "np.maximum, int32, all below zero"
    sends, recvs = below_zero(4, 6), [unwritten(6, np.int32) for _ in range(4)]
    on_practice_ranks(case, student, arguments(sends, recvs, np.maximum))
    expect_maximum(case, recvs, below_zero(4, 6), [(0, 6)] * 4)
    yield case
    nbytes = 8000
    run = on_practice_ranks(
        "5 ranks, 1,000 elements", student, arguments(tagged(5, 1000), [unwritten(1000) for _ in range(5)], np.add)
    )
    if run.bytes_sent[0] != 4 * nbytes or run.bytes_received[0] != 4 * nbytes or max(run.bytes_sent[1:]) != nbytes:
        raise Wrong(
            "5 ranks, 8,000 bytes",
            f"the root receives {run.bytes_received[0]:,} bytes and sends "
            f"{run.bytes_sent[0]:,}, the others send {run.bytes_sent[1:]}; expected 32,000, 32,000 and 8,000 "
            "each: every message goes to the root or comes from it, one each",
        )
    yield "5 ranks, 8,000 bytes: 32,000 go to the root, and 32,000 come from it"
    case = "the same function on 4 real ranks"
    left = on_real_ranks(case, student, arguments(tagged(4, 1000), unwritten(1000), np.add))
    expect_sum(case, [recv for _, recv, _ in left], [(0, 1000)] * 4, _why_not_summed)
    yield case


def _why_not_summed(faults, results) -> str:
    first = faults[0]
    if first.rank:  # the root has it
        return (
            "the result is not sent back to the others."
            if first.kind == "unwritten"
            else "what comes back to the others is not the finished result."
        )
    if first.kind == "unwritten":
        return "the root puts nothing into its recv."
    alone = set(range(len(results))) - set(first.missing)
    if alone == {0} and not first.repeated:
        return (
            "recv holds the root's own vector alone: what arrives is not reduced into it; op(recv, part) without "
            "out=recv changes nothing."
        )
    if len(alone) == 1 and not first.repeated:
        return f"recv holds rank {min(alone)}'s vector alone: each vector replaces the one before."
    if first.missing == (0,):
        return "the root's own part is forgotten."
    return "the root's own part is added twice." if first.repeated == (0,) else ""
