"""What proves the transfer exercise of lab 06 right: a reduce-scatter in log2(N) steps."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives.check_ranks import on_practice_ranks, on_real_ranks
from labs_helpers.collectives.check_rings import expect_bytes_but_one_chunk, told_sent
from labs_helpers.collectives.check_values import arguments, below_zero, complete, expect_maximum, expect_sum, tagged
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.course.exercise import exercise
from labs_helpers.course.wrong import Wrong


@exercise("06/8", "transfer: recursive halving", points=25, minutes=20)
def recursive_halving(student):
    for case, size, n in (("2 ranks, 8 elements", 2, 8), ("4 ranks, 16 elements", 4, 16), ("1 rank", 1, 5),
                          ("8 ranks, 27 elements, chunks of 4 and of 3", 8, 27),
                          ("8 ranks, 5 elements, three chunks empty", 8, 5)):
        data = tagged(size, n)
        run = on_practice_ranks(case, student, arguments(data, np.add))
        expect_sum(case, data, chunk_bounds(n, size), _why)
        steps = size.bit_length() - 1
        if max(run.messages_sent) > steps:
            raise Wrong(case, f"a rank sends {max(run.messages_sent)} messages, log2({size}) = {steps} are enough.\n"
                        "Likely cause: a ring; in the first step half of the vector goes to the rank size / 2 away.")
        expect_bytes_but_one_chunk(case, run, n)
        yield f"{case}: {told_sent(run)}"
    case = "np.maximum, int32, all below zero"
    data = below_zero(4, 10)
    on_practice_ranks(case, student, arguments(data, np.maximum))
    expect_maximum(case, data, below_zero(4, 10), chunk_bounds(10, 4))
    yield case
    case = "the same function on 4 real ranks"
    left = on_real_ranks(case, student, arguments(tagged(4, 1001), np.add))
    expect_sum(case, [data for data, _ in left], chunk_bounds(1001, 4), _why)
    yield case


def _why(faults, results) -> str:
    whole = complete(results)
    size, n = whole.shape
    bounds, bits = chunk_bounds(n, size), size.bit_length() - 1
    reversed_rank = [int(f"{rank:0{bits}b}"[::-1] or "0", 2) for rank in range(size)]
    if all(np.array_equal(got, was) for got, was in zip(results, tagged(size, n), strict=True)):
        return "what arrives is never reduced into the vector: op(kept, part, out=kept)."
    if all(whole[rank, slice(*bounds[size - 1 - rank])].all() for rank in range(size)):
        return "each rank keeps the half that its partner should have."
    if size > 2 and all(whole[rank, slice(*bounds[reversed_rank[rank]])].all() for rank in range(size)):
        return "the halves are taken in the wrong order: the first partner is size / 2 away, the last is 1 away."
    if n % size and n > size:
        return ("equal chunks are right, these are uneven: the halves have to meet where chunk_bounds says, on both "
                "sides of the exchange.")
    if faults[0].repeated:
        return "what arrives is reduced into itself, or twice: it needs a buffer of its own."
    return "a step is missing, or what is kept in one step is not what the next step halves."
