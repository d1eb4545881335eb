"""What proves exercises 3 and 4 of lab 06 right: a chunk reduced on each rank, then everywhere."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks.ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.lab06.checks.ring_causes import why_not_gathered, why_not_scattered
from labs_helpers.collectives.lab06.checks.values import (
    arguments,
    below_zero,
    expect_maximum,
    expect_sum,
    expect_unchanged,
    tagged,
    unwritten,
)
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong

CASES = (
    ("3 ranks, 12 elements, equal chunks", 3, 12),
    ("5 ranks, 13 elements, chunks of 3 and of 2", 5, 13),
    ("1 rank", 1, 4),
    ("2 ranks, 7 elements", 2, 7),
    ("8 ranks, 27 elements", 8, 27),
    ("4 ranks, 2 elements, two chunks empty", 4, 2),
)


@exercise("06/3", "ring reduce-scatter", points=15, minutes=20, reference=exercises.ring_reduce_scatter)
def ring_reduce_scatter(student):
    for case, size, n in CASES:
        data = tagged(size, n)
        run = on_practice_ranks(case, student, arguments(data, np.add))
        _expect_ring(case, run)
        _expect_float64(case, run, size - 1, n)
        expect_sum(case, data, chunk_bounds(n, size), why_not_scattered)
        expect_bytes_but_one_chunk(case, run, n)
        yield f"{case}: {told_sent(run)}"
    yield from maxima_and_real_ranks(student, 3, 1000, why_not_scattered)


def maxima_and_real_ranks(student, size: int, n: int, why):
    """The last cases of a reduce-scatter: a maximum, and `size` real ranks with n elements."""
    case = "np.maximum, int32, all below zero"
    data = below_zero(4, 10)
    on_practice_ranks(case, student, arguments(data, np.maximum))
    expect_maximum(case, data, below_zero(4, 10), chunk_bounds(10, 4))
    yield case
    case = f"the same function on {size} real ranks"
    left = on_real_ranks(case, student, arguments(tagged(size, n), np.add))
    expect_sum(case, [data for data, _ in left], chunk_bounds(n, size), why)
    yield case


@exercise("06/4", "all-gather, and compose", points=10, minutes=15, reference=exercises.ring_allreduce)
def ring_allreduce(student):
    for case, size, n in CASES:
        sends, recvs = tagged(size, n), [unwritten(n) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs, np.add))
        _expect_not_naive(case, run, n)
        _expect_ring(case, run)
        _expect_float64(case, run, 2 * (size - 1), n)
        expect_unchanged(case, sends, tagged(size, n))
        expect_sum(case, recvs, [(0, n)] * size, why_not_gathered)
        sent, needed = sum(run.bytes_sent), 2 * (size - 1) * 8 * n
        if sent != needed:
            raise Wrong(
                case,
                f"the ranks sent {sent:,} bytes in all, 2·(N − 1) times the vector are {needed:,}.\n"
                + (
                    "Likely cause: each step sends the whole vector; one chunk is enough."
                    if {m.nbytes for m in run.messages} == {8 * n}
                    else "A step too many, or a chunk that the other side has already."
                    if sent > needed
                    else ""
                ),
            )
        yield f"{case}: {sent:,} bytes in all, {run.steps} steps"
    case = "np.maximum, int32, all below zero"
    sends, recvs = below_zero(4, 10), [unwritten(10, np.int32) for _ in range(4)]
    on_practice_ranks(case, student, arguments(sends, recvs, np.maximum))
    expect_maximum(case, recvs, below_zero(4, 10), [(0, 10)] * 4)
    yield case
    for size in (4, 5, 8):
        case = f"{size} ranks, 8,000 bytes"
        run = on_practice_ranks(
            case, student, arguments(tagged(size, 1000), [unwritten(1000) for _ in range(size)], np.add)
        )
        if len(set(run.bytes_sent)) > 1:
            raise Wrong(case, f"the ranks sent {run.bytes_sent} bytes; in a ring all send the same")
        yield f"{case}: each rank sends {run.bytes_sent[0]:,} = 2·{size - 1}/{size} of them"
    case = "the same function on 4 real ranks"
    left = on_real_ranks(case, student, arguments(tagged(4, 1001), unwritten(1001), np.add))
    expect_sum(case, [recv for _, recv, _ in left], [(0, 1001)] * 4, why_not_gathered)
    yield case


def _expect_ring(case: str, run) -> None:
    """Raises Wrong if a message does not go to a neighbour."""
    for m in run.messages:
        if (m.dest - m.source) % run.size not in (1, run.size - 1):
            raise Wrong(
                case,
                f"rank {m.source} sends to rank {m.dest}; round a ring it sends to its neighbours alone, "
                f"ranks {(m.source - 1) % run.size} and {(m.source + 1) % run.size}",
            )


def _expect_float64(case: str, run, steps: int, n: int) -> None:
    """Raises Wrong if the ranks send as many messages as they should, `steps` each, of half the bytes."""
    sent, needed = sum(run.bytes_sent), steps * 8 * n
    if sent and run.messages_sent == [steps] * run.size and 2 * sent == needed:
        raise Wrong(
            case,
            f"the ranks sent {sent} bytes in all, half of {needed}: the elements have 8 bytes, and 4 of "
            "each travel; send and receive in the vector's own dtype",
        )


def _expect_not_naive(case: str, run, n: int) -> None:
    """Raises Wrong if all messages go to one rank or come from it, as round no ring of three or more."""
    roots = [root for root in range(run.size) if all(root in (m.source, m.dest) for m in run.messages)]
    if run.size > 2 and run.messages and roots:
        raise Wrong(
            case,
            f"the ranks sent {run.bytes_sent} bytes, every message to rank {roots[0]} or from it: the "
            "naive all-reduce. Round a ring each sends 2·(N − 1) chunks, here about "
            f"{16 * (run.size - 1) * n // run.size} bytes",
        )


def told_sent(run) -> str:
    """Such as: each rank sends 2 messages, 64 bytes."""
    low, high, count = min(run.bytes_sent), max(run.bytes_sent), run.messages_sent[0]
    return f"each rank sends {count} message{'s' * (count != 1)}, {low if low == high else f'{low} to {high}'} bytes"


def expect_bytes_but_one_chunk(case: str, run, n: int) -> None:
    """Raises Wrong unless each rank sent its vector but one chunk: what a reduce-scatter needs at least."""
    for rank, (start, stop) in enumerate(chunk_bounds(n, run.size)):
        needed, sent = 8 * (n - (stop - start)), run.bytes_sent[rank]
        if sent == needed:
            continue
        cause = ""
        if sent == 8 * n * run.messages_sent[rank]:
            cause = "\nLikely cause: each step sends the whole vector; one chunk is enough."
        elif sent > needed:
            cause = "\nA step too many, or a part of the vector that the other side has no use for."
        raise Wrong(
            case,
            f"rank {rank} sent {sent} bytes in {run.messages_sent[rank]} messages, {needed} are needed: "
            f"all chunks but one{cause}",
        )
