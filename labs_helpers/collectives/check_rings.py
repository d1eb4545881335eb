"""What proves exercises 3 and 4 of lab 06 right: a chunk reduced on each rank, then everywhere."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives import lesson
from labs_helpers.collectives.check_ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.check_values import (
    arguments,
    below_zero,
    complete,
    expect_maximum,
    expect_sum,
    expect_unchanged,
    tagged,
    unwritten,
)
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.course.exercise import exercise
from labs_helpers.course.wrong import Wrong

CASES = (("3 ranks, 12 elements, equal chunks", 3, 12), ("5 ranks, 13 elements, chunks of 3 and of 2", 5, 13),
         ("1 rank", 1, 4), ("2 ranks, 7 elements", 2, 7), ("8 ranks, 27 elements", 8, 27),
         ("4 ranks, 2 elements, two chunks empty", 4, 2))


@exercise("06/3", "ring reduce-scatter", points=15, minutes=20, reference=lesson.ring_reduce_scatter)
def ring_reduce_scatter(student):
    for case, size, n in CASES:
        data = tagged(size, n)
        run = on_practice_ranks(case, student, arguments(data, np.add))
        expect_sum(case, data, chunk_bounds(n, size), why_not_scattered)
        expect_bytes_but_one_chunk(case, run, n)
        yield f"{case}: {told_sent(run)}"
    case = "np.maximum, int32, all below zero"
    data = below_zero(4, 10)
    on_practice_ranks(case, student, arguments(data, np.maximum))
    expect_maximum(case, data, below_zero(4, 10), chunk_bounds(10, 4))
    yield case
    case = "the same function on 3 real ranks"
    left = on_real_ranks(case, student, arguments(tagged(3, 1000), np.add))
    expect_sum(case, [data for data, _ in left], chunk_bounds(1000, 3), why_not_scattered)
    yield case


@exercise("06/4", "all-gather, and compose", points=10, minutes=15, reference=lesson.ring_allreduce)
def ring_allreduce(student):
    for case, size, n in CASES:
        sends, recvs = tagged(size, n), [unwritten(n) for _ in range(size)]
        run = on_practice_ranks(case, student, arguments(sends, recvs, np.add))
        expect_unchanged(case, sends, tagged(size, n))
        expect_sum(case, recvs, [(0, n)] * size, _why_not_gathered)
        sent, needed = sum(run.bytes_sent), 2 * (size - 1) * 8 * n
        if sent != needed:
            raise Wrong(case, f"the ranks sent {sent:,} bytes in all, 2·(N − 1) times the vector are {needed:,}.\n"
                        "Likely cause: " + ("a step sends the whole vector; one chunk is enough." if sent > 1.5 * needed
                                            else "a step too many, or a chunk that the other side has already."))
        yield f"{case}: {sent:,} bytes in all, {run.steps} steps"
    case = "np.maximum, int32, all below zero"
    sends, recvs = below_zero(4, 10), [unwritten(10, np.int32) for _ in range(4)]
    on_practice_ranks(case, student, arguments(sends, recvs, np.maximum))
    expect_maximum(case, recvs, below_zero(4, 10), [(0, 10)] * 4)
    yield case
    for size in (4, 5, 8):
        case = f"{size} ranks, 8,000 bytes"
        run = on_practice_ranks(case, student, arguments(
            tagged(size, 1000), [unwritten(1000) for _ in range(size)], np.add))
        if len(set(run.bytes_sent)) > 1:
            raise Wrong(case, f"the ranks sent {run.bytes_sent} bytes; in a ring all send the same")
        yield f"{case}: each rank sends {run.bytes_sent[0]:,} = 2·{size - 1}/{size} of them"
    case = "the same function on 4 real ranks"
    left = on_real_ranks(case, student, arguments(tagged(4, 1001), unwritten(1001), np.add))
    expect_sum(case, [recv for _, recv, _ in left], [(0, 1001)] * 4, _why_not_gathered)
    yield case


def told_sent(run) -> str:
    """Such as: each rank sends 2 messages, 64 bytes."""
    low, high, count = min(run.bytes_sent), max(run.bytes_sent), run.messages_sent[0]
    return (f"each rank sends {count} message{'s' * (count != 1)}, "
            f"{low if low == high else f'{low} to {high}'} bytes")


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
            cause = "\nLikely cause: a step too many, or a part of the vector that the other side has no use for."
        raise Wrong(case, f"rank {rank} sent {sent} bytes in {run.messages_sent[rank]} messages, {needed} are needed: "
                    f"all chunks but one{cause}")


def why_not_scattered(faults, results) -> str:
    """The likely cause of a reduce-scatter's faults."""
    size, n = len(results), len(results[0])
    for cause, slip in ring_slips(size, n).items():
        if all(np.array_equal(got, wrong) for got, wrong in zip(results, slip, strict=True)):
            return cause
    if n % size and n > size:
        return ("equal chunks are right, these are uneven; chunks of n // size lose the last elements, chunk_bounds "
                "gives them to the first chunks.")
    if faults[0].repeated:
        return "a chunk is reduced twice: a step too many, or it goes round a second time."
    if faults[0].kind == "elsewhere":
        return "the parts of two different chunks were reduced into one another."
    return ("the chunk that is sent is not the one reduced in the step before; the index of both goes back by one in "
            "each step." if faults[0].missing else "")


def ring_slips(size: int, n: int) -> dict:
    """Cause → what all ranks' vectors would be after a ring reduce-scatter with that mistake; of equal chunks."""
    if n % size or size == 1:
        return {}
    slips = {"what arrives is never reduced into the vector: op(own, part, out=own).": _ring(size, n, steps=0),
             "a step too few: with N ranks there are N − 1.": _ring(size, n, steps=size - 2),
             "a step too many: with N ranks there are N − 1.": _ring(size, n, steps=size),
             "what arrives replaces the chunk instead of being reduced into it.": _ring(size, n, adds=False),
             "a step receives the same chunk that it sends; what arrives is the one before.":
                 _ring(size, n, received=-1),
             "the wrong way round the ring: data[…] goes to the right, what arrives comes from the left.":
                 _ring(size, n, way=-1)}
    for by in range(1, size):
        sign, far = ("+", by) if by <= size // 2 else ("−", size - by)
        slips[f"each rank ends with chunk rank {sign} {far}, not with its own: all chunk indices are off by {far}."] = (
            _ring(size, n, sent=by - 1, received=by - 2))
    return slips


def _ring(size: int, n: int, steps=None, sent: int = -1, received: int = -2, way: int = 1, adds: bool = True) -> list:
    """What all ranks hold after `steps`: in each, rank r sends chunk r + sent − step, receives r + received − step."""
    data, bounds = tagged(size, n), chunk_bounds(n, size)
    for step in range(size - 1 if steps is None else steps):
        parts = [data[rank][slice(*bounds[(rank + sent - step) % size])].copy() for rank in range(size)]
        for rank in range(size):
            own = data[rank][slice(*bounds[(rank + received - step) % size])]
            own[:] = parts[(rank - way) % size] + (own if adds else 0)
    return data


def _why_not_gathered(faults, results) -> str:
    whole, first = complete(results), faults[0]
    size, n = whole.shape
    own = [whole[rank, slice(*bounds)].all() for rank, bounds in enumerate(chunk_bounds(n, size))]
    if first.kind == "unwritten" and not whole.any():
        return "recv is never filled: it starts as a copy of send, and both functions work in it."
    if n % size and n > size:
        return "equal chunks are right, these are uneven; chunks of n // size lose the last elements."
    if first.repeated:
        return "what arrives replaces the chunk; it is not reduced into it a second time."
    if not all(own):
        return ("not even the ranks' own chunks are finished: the all-gather writes into them, or the reduce-scatter "
                "did not run, or worked in another vector.")
    if n >= size and (whole.mean(1) < 1.5 / size).all():
        return "only the ranks' own chunks are finished: what the all-gather receives gets nowhere."
    if first.kind == "elsewhere":
        return "a chunk arrives in another chunk's place."
    return ("the all-gather sends chunks that are not finished yet, or a step is missing: begin with chunk `rank`, and "
            "go on with the one that has just arrived.")
