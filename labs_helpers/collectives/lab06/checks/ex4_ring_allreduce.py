"""Check exercise 4 of lab 06: both rings, one after the other."""

from functools import partial

import numpy as np

from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks import vectors
from labs_helpers.collectives.lab06.checks.on_ranks import called, on_ranks
from labs_helpers.collectives.lab06.checks.rings import CASES, expect_ring, ring, too_much
from labs_helpers.collectives.lab06.checks.vectors import into_recv, tagged
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong


@exercise("06/4", "all-gather, and compose", points=10, minutes=15, reference=exercises.ring_allreduce)
def ring_allreduce(student):
    for case, size, n in CASES:
        own = into_recv(sends := tagged(size, n), np.add)
        run = on_ranks(case, student, called, own)
        _expect_even(case, run, n)
        expect_ring(case, run, 2 * (size - 1), n)
        vectors.expect_unchanged(case, sends, tagged(size, n))
        vectors.expect_sum(case, *vectors.results(own), causes(size, n), vectors.chunk_cause)
        sent, needed = sum(run.bytes_sent), 2 * (size - 1) * 8 * n
        if sent != needed:
            found = f"the ranks sent {sent:,} bytes in all, 2·(N − 1) times the vector are {needed:,}."
            raise Wrong(case, found, cause=too_much(run.messages, sent, needed, n))
        yield f"{case}: {sent:,} bytes in all, {run.steps} steps"
    yield vectors.check_maximum(student, into_recv)
    for size in (4, 5, 8):
        case = f"{size} ranks, 8,000 bytes"
        run = on_ranks(case, student, called, into_recv(tagged(size, 1000), np.add))
        _expect_even(case, run, 1000)
        yield f"{case}: each rank sends {run.bytes_sent[0]:,} = 2·{size - 1}/{size} of them"
    yield vectors.check_real_ranks(student, into_recv, 4, 1001)


def _expect_even(case: str, run, n: int) -> None:
    """Raise Wrong unless all ranks send the same number of bytes when chunks are equal."""
    if n % run.size == 0 and len(set(run.bytes_sent)) > 1:
        about = 16 * (run.size - 1) * n // run.size
        found = f"the ranks sent {run.bytes_sent} bytes; round a ring each sends 2·(N − 1) chunks, here {about} bytes"
        roots = [root for root in range(run.size) if all(root in (m.source, m.dest) for m in run.messages)]
        naive = "the naive all-reduce: every message goes to one rank or comes from it"
        raise Wrong(case, found, cause=naive if roots else "")


def causes(size: int, n: int):
    """Return cause → all ranks' recvs, for equal chunks."""
    if n % size:
        return
    sends = tagged(size, n)
    no_chunk = "even the ranks' own chunks are unfinished: the reduce-scatter did not run, or worked in another vector"
    own_alone = "only the ranks' own chunks are finished: the all-gather does not run, or its received data is lost"
    too_early = "the all-gather sends unfinished chunks: start with chunk `rank`, then send the one that just arrived"
    yield "recv[:] = send comes last, and overwrites the result; it comes first", sends
    yield "recv is never filled: copy send into it first, then both functions work in it", [vectors.unwritten(n)] * size
    for turn in (1, -1):  # the direction of the ring
        scatter, gather = partial(ring, turn=turn), partial(ring, turn=turn, sent=0, received=-1, adds=False)
        scattered = scatter(sends)
        yield "the reduce-scatter runs twice, and the second one adds up sums", gather(scatter(scattered))
        yield "the all-gather runs before the reduce-scatter; no chunk is finished then", scatter(gather(sends))
        yield "an arriving chunk replaces the old one; it must not be reduced again", gather(scattered, adds=True)
        yield no_chunk, gather(sends)
        yield own_alone, scattered
        yield "the all-gather lacks a step: N ranks need N − 1", gather(scattered, steps=size - 2)
        upward = "the all-gather's chunk numbers go up, but chunks travel to the right, so they go down by one"
        for received in (-1, 1):
            yield upward, ring(scattered, sent=0, received=received, turn=-turn, way=turn, adds=False)
        same = "the all-gather sends, or receives, the same chunk in every step: its number has to go down"
        yield same, gather(scattered, by=(0, 1))
        yield same, gather(scattered, by=(1, 0))
        beside = "the all-gather stores an arriving chunk in the wrong place; it is the one before the chunk just sent"
        for received in range(-size, -1):
            yield beside, gather(scattered, received=received)
        for far in range(1, size):
            yield too_early, gather(scattered, sent=far, received=far - 1)
