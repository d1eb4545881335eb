"""The transfer exercise of lab 08: each rank sends its largest entries, and keeps what it has not sent."""

from __future__ import annotations

from numbers import Real

import torch

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.messages.torch import INDEX_DTYPE, INDEX_OUTSIDE
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
SAME = "the ranks add up in different orders; the order of the ranks is the same for all"
ERRORS = (
    (
        r"index_add_\(\): self|Index put requires",
        "values and flat have one dtype, and index_add_ takes int32 or int64 positions; flat[…] = takes int64",
    ),
    (
        INDEX_DTYPE,
        "positions of int32 are sent; as an index PyTorch may want int64: places.long()",
    ),
    (
        INDEX_OUTSIDE,
        "positions are not those that were sent: they are read before wait(), or are not received on this rank",
    ),
    (
        r"^Mismatch: all_gather\w*: elements",
        "every rank sends k entries; a threshold gives another number on each rank",
    ),
    (r"selected index k out of range", "topk takes k of the whole vector, along its only dimension"),
)


@exercise("08/9", "transfer: top-k with error feedback", points=50, minutes=40)
def top_k_mean(student):
    for case, size, groups, n, k in CASES:
        gradients = [[_draw(n, rank, step, case) for rank in range(size)] for step in range(STEPS)]
        ran = on_ranks(
            case,
            student,
            _call,
            [([step[rank] for step in gradients], k) for rank in range(size)],
            groups=groups,
            errors=ERRORS,
            stuck="every rank sends k entries by the same collectives; a threshold gives another number on each",
        )
        for members in groups or [tuple(range(size))]:
            own = [[step[rank].double() for rank in members] for step in gradients]
            _expect_outcomes(case, [ran.results[rank] for rank in members], members, own, k)
            for rank in members:
                _expect_bytes(case, rank, ran.of(rank), [one[2] for one in ran.results[rank]], n, k, len(members))
        if not any(call.dtype.startswith(("int", "uint")) for call in ran.of(0)):
            _expect_far(student)
        dense = 4 * n
        yield f"{case}, {STEPS} steps: a rank sends {8 * k} bytes per step, and all gradients have {dense}"


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
    residual = torch.zeros_like(gradients[0])
    left = []
    for own in gradients:
        flat = own.clone()
        returned = student(flat, residual, k, group)
        left.append((flat.clone(), residual.clone(), returned))
    return left


def _expect_outcomes(case, found, members, steps, k):
    right = run(steps, k)

    def fits(answer):
        return all(
            _near(found[r][s][0], answer[s].flat[r]) and _near(found[r][s][1], answer[s].residual[r])
            for r in range(len(members))
            for s in range(STEPS)
        )

    for s in range(STEPS):
        for r, rank in enumerate(members):
            for what, mine, wanted in (
                ("flat", found[r][s][0], right[s].flat[r]),
                ("residual", found[r][s][1], right[s].residual[r]),
            ):
                if not _near(mine, wanted):
                    raise Wrong(
                        f"{case}, step {s + 1}",
                        _listed(mine),
                        f"{_listed(wanted)}\n  its gradients were {_listed(steps[s][r])}",
                        f"rank {rank}'s {what}",
                        likely(mistakes(steps, k), fits),
                        (
                            "two ranks, k = 1, gradients [3, −5] and [4, 1]: write down flat and "
                            "residual of both after two steps"
                        ),
                    )
        for r in range(1, len(members)):
            if not torch.equal(found[r][s][0], found[0][s][0]):
                raise Wrong(
                    f"{case}, step {s + 1}",
                    f"flat has other bits on rank {members[r]} than on rank {members[0]}",
                    cause=SAME,
                )


def _near(found, right) -> bool:
    return found.shape == right.shape and bool(((found.double() - right).abs() <= 1e-3).all())


def _listed(vector):
    return "[" + ", ".join(f"{float(x):.5g}" for x in vector) + "]"


def _expect_bytes(case, rank, calls, returned, n, k, p):
    for number in range(STEPS):
        per_step = len(calls) // STEPS
        mine = calls[number * per_step : (number + 1) * per_step]
        # Of a gather into one tensor and of one into a list all p tensors are counted; of p broadcasts one is its own.
        shared = ("all_gather", "broadcast")
        sent = sum(call.nbytes for call in mine if not call.name.startswith(shared))
        sent += sum(call.nbytes for call in mine if call.name.startswith(shared)) / p
        dtypes = {call.dtype for call in mine}
        if p > 1 and len(mine) > 1 and dtypes == {"float32"}:
            found = f"the values are right, but rank {rank} sends positions in float32"
            raise Wrong(case, found, cause=NO_INTEGERS)
        if p > 1 and sent < 8 * k:
            found = f"rank {rank} sends {sent:.0f} bytes per step: {', '.join(map(str, mine))}; {8 * k} are asked for"
            raise Wrong(
                case, found, cause="values in float32 and positions in int32 have 4 bytes each: fewer are not exact"
            )
        if p > 1 and sent > 8 * k:
            cause = ""
            if any(call.dtype == "uint8" for call in mine):
                cause = "objects are pickled: more bytes than the tensors, and their number is sent as well"
            elif any(call.dtype == "int64" and call.elements == k * p for call in mine):
                cause = LONG
            elif any(call.elements >= n for call in mine if call.name == "all_reduce") or sent >= 4 * n * (
                1 if n > 2 * k else 2
            ):
                cause = DENSE
            elif any(call.dtype == "float64" for call in mine):
                cause = "values travel in float64"
            elif len(mine) > 2:
                cause = "two messages are enough: every rank knows k, and how many ranks there are"
            raise Wrong(
                case,
                (
                    f"the values are right, but rank {rank} sends {sent:.0f} bytes per step: "
                    f"{', '.join(str(call) for call in mine)}; {8 * k} are enough"
                ),
                cause=cause,
            )
    wanted = 8 * k * (p - 1)
    for value in returned:
        if not isinstance(value, Real) or value != wanted:
            guesses = {
                8 * k: "what this rank sends to one of the others; it receives as much from each of them",
                8 * k * p: "its own entries are counted as well; those it has already",
                4 * k * (p - 1): "values alone, or positions alone, are counted",
                12 * k * (p - 1): "positions are counted as int64",
                2 * k * (p - 1): "numbers are counted, not bytes: nbytes",
            }
            cause = "the number of bytes is not returned" if value is None else guesses.get(value, "")
            raise Wrong(
                case, f"rank {rank} returned {value!r:.60}; it receives {wanted} bytes from the others", cause=cause
            )
