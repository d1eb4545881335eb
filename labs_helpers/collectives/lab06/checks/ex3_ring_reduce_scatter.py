"""Check exercise 3 of lab 06: the chunk that each rank has reduced, and the bytes sent for it."""

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06 import exercises
from labs_helpers.collectives.lab06.checks import vectors
from labs_helpers.collectives.lab06.checks.on_ranks import called, on_ranks, sent_by_each
from labs_helpers.collectives.lab06.checks.rings import CASES, expect_ring, ring, too_much
from labs_helpers.collectives.lab06.checks.vectors import in_place, tagged
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong


@exercise("06/3", "ring reduce-scatter", points=15, minutes=20, reference=exercises.ring_reduce_scatter)
def ring_reduce_scatter(student):
    for case, size, n in CASES:
        own = in_place(tagged(size, n), np.add)
        run = on_ranks(case, student, called, own)
        expect_ring(case, run, size - 1, n)
        vectors.expect_sum(case, *vectors.results(own), causes(size, n), vectors.chunk_cause)
        for rank, (start, stop) in enumerate(chunk_bounds(n, size)):
            sent, needed = [m for m in run.messages if m.source == rank], 8 * (n - (stop - start))
            nbytes = run.bytes_sent[rank]
            if nbytes != needed:
                enough = f"{needed} are needed: all chunks but one"
                found = f"rank {rank} sent {nbytes} bytes in {len(sent)} messages, {enough}"
                raise Wrong(case, found, cause=too_much(sent, nbytes, needed, n))
        yield f"{case}: {sent_by_each(run)}"
    yield vectors.check_maximum(student, in_place)
    yield vectors.check_real_ranks(student, in_place, 3, 1000)


def causes(size: int, n: int):
    """Return cause → all ranks' data, for equal chunks."""
    if n % size:
        return
    data = tagged(size, n)
    yield vectors.UNCHANGED, data
    yield "one step is missing: N ranks need N − 1", ring(data, steps=size - 2)
    yield "one step too many: N ranks need N − 1", ring(data, steps=size)
    yield "arriving data replaces the chunk instead of being reduced into it", ring(data, adds=False)
    just_sent = "arriving data is reduced into the chunk that was just sent; it belongs to the chunk before that"
    yield just_sent, ring(data, received=-1)
    at_first = "each step sends the rank's original data; the sum so far has to travel on"
    yield at_first, ring(data, first=True)
    upward = "the chunk numbers go up from step to step, but chunks travel to the right, so they go down by one"
    for off in range(size):
        yield upward, ring(data, sent=off, received=off - 1, turn=-1, way=1)
        yield upward, ring(data, sent=off, received=off + 1, turn=-1, way=1)
    yield "every step sends the same chunk: its number has to go down with each step", ring(data, by=(0, 1))
    yield "every step reduces into the same chunk: its number has to go down, too", ring(data, by=(1, 0))
    yield "the wrong way around the ring: send data[…] to the right, receive from the left", ring(data, way=-1)
    for by in range(1, size):
        sign, far = ("+", by) if by <= size // 2 else ("−", size - by)
        ends = f"each rank ends with chunk rank {sign} {far}, not with its own: all chunk indices are off by {far}"
        yield ends, ring(data, sent=by - 1, received=by - 2)
