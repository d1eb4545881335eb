"""What proves exercise 5 of lab 06 right: who gets which block, in how many messages and steps."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks.ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.lab06.checks.rings import told_sent
from labs_helpers.collectives.lab06.checks.values import arguments, expect_unchanged, unwritten
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong


@exercise("06/5", "all-to-all", points=10, minutes=15, reference=exercises.pairwise_alltoall)
def pairwise_alltoall(student):
    for size, length in ((2, 3), (4, 2), (3, 2), (5, 3), (7, 1), (1, 4), (3, 0)):
        case = f"{size} rank{'s' * (size > 1)}, blocks of {length}"
        sends, recvs = _blocks(size, length), [unwritten(size * length) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs))
        expect_unchanged(case, sends, _blocks(size, length))
        _expect_exchanged(case, recvs, size, length)
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
            cause = _why_not_exchanged(recvs, size, length)
            if cause is None and np.isnan(got).any():
                cause = (
                    "one's own block is forgotten; it needs no message, but it has to be copied."
                    if block == rank
                    else "a step too few, or blocks that land on top of one another."
                )
            element = int(np.flatnonzero(got != whole[block, rank])[0])
            raise Wrong(
                case,
                f"block {block} of rank {rank}, element {element}, {_told(got[element])}; expected rank "
                f"{block}'s block {rank}, element {element}." + (f"\nLikely cause: {cause}" if cause else ""),
            )


def _told(value: float) -> str:
    """Where `value` comes from."""
    if np.isnan(value):
        return "was never written"
    source, of = divmod(int(value), 100)
    return f"is rank {source}'s block {of}, element {round(value % 1 * 1024)}"


def _why_not_exchanged(recvs, size: int, length: int) -> str | None:
    """The mistake that gives all of `recvs`, if it is one of these."""
    sends = np.stack(_blocks(size, length))
    rows, columns = sends.reshape(size, size, length), sends.reshape(size, length, size).swapaxes(1, 2)
    exchanged = columns.swapaxes(0, 1)  # whose columns are blocks
    own_block = np.broadcast_to(rows[np.arange(size), np.arange(size)], rows.shape)
    mistakes = {
        "the blocks are columns: block j is elements j·length to (j + 1)·length − 1, row j of reshape(size, -1).":
            (exchanged, exchanged.swapaxes(1, 2)),
        "the wrong block is sent: block j of send is for rank j.": (own_block,),
        "the block arrives in the wrong place: what comes from rank i is block i of recv.":
            ([[rows[(2 * rank - block) % size, rank] for block in range(size)] for rank in range(size)],),
    }  # fmt: skip
    for cause, outcomes in mistakes.items():
        if any(np.array_equal(np.ravel(recvs), np.ravel(outcome)) for outcome in outcomes):
            return cause
    return None


def _expect_pairwise(case: str, run, size: int, nbytes: int) -> None:
    for rank in range(size):
        sent = [m.nbytes for m in run.messages if m.source == rank]
        if any(m.dest == m.source == rank for m in run.messages):
            raise Wrong(case, f"rank {rank} sends itself a message; its own block is copied")
        if len(sent) != size - 1:
            empty = f", {sent.count(0)} of them empty" if nbytes and 0 in sent else ""
            raise Wrong(
                case,
                f"rank {rank} sends {_messages(len(sent))}{empty}; a block for each other rank makes "
                f"{_messages(size - 1)}",
            )
        if set(sent) - {nbytes}:
            cause = "\nLikely cause: everything is sent to everybody." if set(sent) == {size * nbytes} else ""
            raise Wrong(
                case,
                f"rank {rank} sends {_messages(len(sent))} of {', '.join(map(str, sent))} bytes; a block "
                f"has {nbytes}, {nbytes // 8} elements of 8{cause}",
            )
    if run.steps > size:  # in pairs i + j = step a rank that meets itself rests
        firsts = {
            min((m for m in run.messages if m.source == rank), key=lambda m: m.send_time).dest
            for rank in range(1, size)
        }
        raise Wrong(
            case,
            f"it takes {run.steps} steps, {size - 1} are enough: a rank cannot receive two messages at a "
            "time"
            + (
                "\nLikely cause: everybody sends to rank 0 first, then to rank 1, so that they queue up "
                "for one receiver; each has to start elsewhere."
                if firsts == {0}
                else ""
            ),
        )


def _messages(count: int) -> str:
    return f"{count} message{'s' * (count != 1)}"
