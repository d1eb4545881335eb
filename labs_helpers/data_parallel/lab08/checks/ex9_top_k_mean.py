"""Check the transfer exercise of lab 08: each rank sends its largest entries, and keeps the others."""

from functools import partial
from itertools import product

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.torch import INDEX_DTYPE, INDEX_OUTSIDE
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.data_parallel.lab08.checks.averaging import first_of
from labs_helpers.data_parallel.lab08.checks.on_ranks import on_ranks
from labs_helpers.data_parallel.lab08.checks.top_k_mistakes import mistakes, run

BITS = "3 ranks, sums that are rounded"
ZEROS = "3 ranks, with fewer than k nonzero gradients on rank 0"
CASES = (  # name, ranks, groups, n, k
    ("4 ranks, 3 of 10 entries", 4, None, 10, 3),
    ("4 ranks, 2 of 7 entries", 4, None, 7, 2),
    ("two groups, ranks 4, 0, 2 and ranks 3, 1", 5, [(4, 0, 2), (3, 1)], 8, 2),
    ("3 ranks, all of 5 entries", 3, None, 5, 5),
    (BITS, 3, None, 6, 6),
    (ZEROS, 3, None, 9, 4),
    ("1 rank", 1, None, 6, 2),
)
STEPS = 3
FAR = "2 ranks, 1 of 16,777,218 entries"
NO_INTEGERS = "float32 represents all whole numbers only up to 2²⁴: send positions as int32"
LONG = "positions are sent as int64, 8 bytes each, as topk returns them: .int() makes them int32"
DENSE = "the whole vector is sent; send only the k entries"
STUCK = "every rank has to send k entries by the same collectives; a threshold selects a different number on each"
ADVICE = "for two ranks, k = 1, gradients [3, −5] and [4, 1], write down flat and residual after two steps"
SAME = "the ranks add in different orders; add in rank order on all of them"
ERRORS = (
    (
        r"index_add_\(\): self|Index put requires",
        "values need the dtype of flat; index_add_ accepts int32 or int64 positions, and flat[…] = needs int64",
    ),
    (INDEX_DTYPE, "positions are sent as int32, but an index may have to be int64: places.long()"),
    (INDEX_OUTSIDE, "the positions are wrong: they were read before wait(), or not received on this rank"),
    (r"^Mismatch: all_gather\w*: elements", STUCK),
    (r"selected index k out of range", "call topk on the whole vector, along its only dimension"),
)


@exercise("08/9", "transfer: top-k with error feedback", points=25, minutes=25)
def top_k_mean(student):
    comparison = Comparison("rank {1}'s {2} after step {0}", bound=lambda found, right: 1e-3, advice=ADVICE)
    for case, size, groups, n, k in CASES:
        gradients = [[_draw(n, rank, step, case) for rank in range(size)] for step in range(STEPS)]
        own = [([step[rank] for step in gradients], k) for rank in range(size)]
        ran = on_ranks(case, student, _call, own, groups=groups, errors=ERRORS, stuck=STUCK)
        for members in groups or [range(size)]:
            steps = [{rank: step[rank].double() for rank in members} for step in gradients]
            found = {s: {rank: ran.results[rank][s - 1] for rank in members} for s in range(1, STEPS + 1)}
            comparison.expect(case, found, run(steps, k), partial(mistakes, steps, k))
            for rank, s in product(members, found):
                if not torch.equal(found[s][rank]["flat"], found[s][members[0]]["flat"]):
                    bits = f"flat has other bits on rank {rank} than on rank {members[0]}"
                    raise Wrong(f"{case}, step {s}", bits, cause=SAME)
            for rank in members:
                _expect_sent(case, rank, ran.of(rank), n, k, len(members))
        if not any(call.dtype.startswith(("int", "uint")) for call in ran.of(0)):
            _expect_far(student)
        yield f"{case}, {STEPS} steps: a rank sends {8 * k} of {4 * n} bytes per step"


def _expect_far(student):
    """Check positions beyond float32's whole numbers, for an answer that sends no integers.

    An answer may also send the bits of an integer as a float, which is exact.
    """
    far = 2**24 + 1

    def call(student, group, rank):
        flat, residual = torch.zeros(far + 1), torch.zeros(far + 1)
        flat[far if rank == 0 else 3] = 4.0
        student(flat, residual, 1, group)
        return flat[far].item()

    for rank, found in enumerate(on_ranks(FAR, student, call, [(0,), (1,)]).results):
        if found != 2.0:
            raise Wrong(FAR, f"rank {rank}'s flat is {found:g} at {far:,}, expected 2", cause=NO_INTEGERS)


def _draw(n, rank, step, case):
    """Draw whole numbers of different magnitudes; the largest is negative in every second step.

    Their sums are exact, except in one case.
    """
    generator = torch.Generator().manual_seed(100 * step + rank)
    signs = torch.randint(0, 2, (n,), generator=generator) * 2.0 - 1
    values = torch.randperm(997, generator=generator)[:n] + 1.0
    values[values.argmax()] *= -signs[values.argmax()] * (-1) ** step
    values *= signs
    if case == BITS:
        values /= 7  # the sum of three such numbers depends on its order
    if case == ZEROS and rank == 0:
        values[2:] = 0
    return values


def _call(student, group, gradients, k):
    """Return flat and residual after each step."""
    residual, left = torch.zeros_like(gradients[0]), []
    for own in gradients:
        flat = own.clone()
        student(flat, residual, k, group)
        left.append({"flat": flat.clone(), "residual": residual.clone()})
    return left


def _expect_sent(case, rank, calls, n, k, p):
    per_step = len(calls) // STEPS
    for mine in (calls[i * per_step : (i + 1) * per_step] for i in range(STEPS if p > 1 else 0)):
        # An all-gather counts the tensors of all p ranks, and so do p broadcasts; a rank's share is 1/p.
        shared = ("all_gather", "broadcast")
        sent = sum(call.nbytes * (1 if call.name.startswith(shared) else p) for call in mine) / p
        dtypes = {call.dtype for call in mine}
        if len(mine) > 1 and dtypes == {"float32"}:
            raise Wrong(case, f"the values are right, but rank {rank} sends positions in float32", cause=NO_INTEGERS)
        told = f"rank {rank} sends {sent:.0f} bytes per step: {', '.join(map(str, mine))}; {8 * k} are"
        if sent < 8 * k:
            cause = "values in float32 and positions in int32 take 4 bytes each; fewer bytes are not exact"
            raise Wrong(case, f"{told} asked for", cause=cause)
        if sent > 8 * k:
            whole = any(call.name == "all_reduce" and call.elements >= n for call in mine)
            causes = (
                ("uint8" in dtypes, "objects are pickled, which takes more bytes than the tensors"),
                (any(call.dtype == "int64" and call.elements == k * p for call in mine), LONG),
                (whole or sent >= 4 * n * (1 if n > 2 * k else 2), DENSE),
                ("float64" in dtypes, "values travel in float64"),
                (len(mine) > 2, "two messages are enough: every rank knows k and the number of ranks"),
            )
            raise Wrong(case, f"the values are right, but {told} enough", cause=first_of(causes))
