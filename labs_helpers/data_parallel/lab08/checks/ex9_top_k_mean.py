"""The transfer exercise of lab 08: each rank sends its largest entries, and keeps what it has not sent."""

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
ZEROS = "3 ranks, of which rank 0 has fewer gradients than entries to send"
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
NO_INTEGERS = "float32 has whole numbers up to 2²⁴ alone; int32 is asked for"
LONG = "positions travel as int64, 8 bytes each, as topk gives them: .int() makes them int32"
DENSE = "the whole vector travels; the entries alone are to be sent"
STUCK = "every rank sends k entries by the same collectives; a threshold gives another number on each"
ADVICE = "two ranks, k = 1, gradients [3, −5] and [4, 1]: write down flat and residual of both after two steps"
SAME = "the ranks add up in different orders; the order of the ranks is the same for all"
ERRORS = (
    (
        r"index_add_\(\): self|Index put requires",
        "values and flat have one dtype, and index_add_ takes int32 or int64 positions; flat[…] = takes int64",
    ),
    (INDEX_DTYPE, "positions of int32 are sent; as an index PyTorch may want int64: places.long()"),
    (INDEX_OUTSIDE, "positions are not those that were sent: read before wait(), or not received on this rank"),
    (r"^Mismatch: all_gather\w*: elements", STUCK),
    (r"selected index k out of range", "topk takes k of the whole vector, along its only dimension"),
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
        yield f"{case}, {STEPS} steps: a rank sends {8 * k} bytes per step, and all gradients have {4 * n}"


def _expect_far(student):
    """Positions that float32 does not have, for an answer that sends no integers; their bits in a float are exact."""
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
    """Whole numbers of different magnitudes, the largest negative every second time; their sums are exact, but for one
    case."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    signs = torch.randint(0, 2, (n,), generator=generator) * 2.0 - 1
    values = torch.randperm(997, generator=generator)[:n] + 1.0
    values[values.argmax()] *= -signs[values.argmax()] * (-1) ** step
    values *= signs
    if case == BITS:
        values /= 7  # a sum of three such depends on its order
    if case == ZEROS and rank == 0:
        values[2:] = 0
    return values


def _call(student, group, gradients, k):
    """What is left after each step."""
    residual, left = torch.zeros_like(gradients[0]), []
    for own in gradients:
        flat = own.clone()
        student(flat, residual, k, group)
        left.append({"flat": flat.clone(), "residual": residual.clone()})
    return left


def _expect_sent(case, rank, calls, n, k, p):
    per_step = len(calls) // STEPS
    for mine in (calls[i * per_step : (i + 1) * per_step] for i in range(STEPS if p > 1 else 0)):
        # Of a gather into one tensor and of one into a list all p tensors are counted; of p broadcasts one is its own.
        shared = ("all_gather", "broadcast")
        sent = sum(call.nbytes * (1 if call.name.startswith(shared) else p) for call in mine) / p
        dtypes = {call.dtype for call in mine}
        if len(mine) > 1 and dtypes == {"float32"}:
            raise Wrong(case, f"the values are right, but rank {rank} sends positions in float32", cause=NO_INTEGERS)
        told = f"rank {rank} sends {sent:.0f} bytes per step: {', '.join(map(str, mine))}; {8 * k} are"
        if sent < 8 * k:
            cause = "values in float32 and positions in int32 have 4 bytes each: fewer are not exact"
            raise Wrong(case, f"{told} asked for", cause=cause)
        if sent > 8 * k:
            whole = any(call.name == "all_reduce" and call.elements >= n for call in mine)
            causes = (
                ("uint8" in dtypes, "objects are pickled: more bytes than the tensors have"),
                (any(call.dtype == "int64" and call.elements == k * p for call in mine), LONG),
                (whole or sent >= 4 * n * (1 if n > 2 * k else 2), DENSE),
                ("float64" in dtypes, "values travel in float64"),
                (len(mine) > 2, "two messages are enough: every rank knows k, and how many ranks there are"),
            )
            raise Wrong(case, f"the values are right, but {told} enough", cause=first_of(causes))
