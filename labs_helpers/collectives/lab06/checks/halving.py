"""What proves the transfer exercise of lab 06 right: a reduce-scatter in log2(N) steps."""

from __future__ import annotations

from functools import partial

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06.checks.ranks import on_practice_ranks
from labs_helpers.collectives.lab06.checks.ring_causes import UNCHANGED
from labs_helpers.collectives.lab06.checks.rings import maxima_and_real_ranks, told_sent
from labs_helpers.collectives.lab06.checks.values import arguments, complete, expect_sum, tagged
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict.wrong import Wrong


@exercise("06/8", "transfer: recursive halving", points=25, minutes=20)
def recursive_halving(student):
    for case, size, n in (
        ("2 ranks, 8 elements", 2, 8),
        ("4 ranks, 16 elements", 4, 16),
        ("1 rank", 1, 5),
        ("8 ranks, 27 elements, chunks of 4 and of 3", 8, 27),
        ("8 ranks, 5 elements, three chunks empty", 8, 5),
    ):
        data = tagged(size, n)
        run = on_practice_ranks(case, student, arguments(data, np.add))
        _expect_steps(case, run, n)
        expect_sum(case, data, chunk_bounds(n, size), partial(_why, run=run))
        _expect_halves(case, run, n)
        yield f"{case}: {told_sent(run)}"
    yield from maxima_and_real_ranks(student, 4, 1001, _why)


def _expect_steps(case: str, run, n: int) -> None:
    """Raises Wrong unless each rank sent log2(size) messages; those that are empty it may leave out."""
    steps = run.size.bit_length() - 1
    for rank, count in enumerate(run.messages_sent):
        if np.count_nonzero(_halves(rank, run.size, n)) <= count <= steps:
            continue
        why = ": a step is missing" if count < steps else ""
        if count == run.size - 1 and all((m.dest - m.source) % run.size == 1 for m in run.messages):
            why = ": it is a ring"
        raise Wrong(
            case,
            f"rank {rank} sends {count} message{'s' * (count != 1)}, log2({run.size}) = {steps} are asked for{why}",
        )


def _expect_halves(case: str, run, n: int) -> None:
    """Raises Wrong unless each rank sent half of the vector, then a quarter, and so on."""
    for rank in range(run.size):
        sent, halves = [m.nbytes // 8 for m in _sent(run, rank)], _halves(rank, run.size, n)
        if sum(sent) != sum(halves):
            raise Wrong(case, _told_sizes(rank, sent, halves, n))


def _told_sizes(rank: int, sent: list[int], halves: list[int], n: int) -> str:
    whole = ", the whole vector" if set(sent) == {n} else ""
    return (
        f"rank {rank} sends {_listed(sent)} elements{whole}; half of the vector, then a quarter and so on are "
        f"enough: {_listed(halves)}"
    )


def _halves(rank: int, size: int, n: int) -> list[int]:
    """How many elements `rank` sends in each step, of those between the bounds of the chunks."""
    bounds, first, distance, counts = chunk_bounds(n, size), 0, size // 2, []
    while distance:
        give = first + distance - (rank & distance)
        counts.append(bounds[give + distance - 1][1] - bounds[give][0])
        first += rank & distance
        distance //= 2
    return counts


def _sent(run, rank: int) -> list:
    return sorted((m for m in run.messages if m.source == rank), key=lambda m: m.send_time)


def _listed(numbers) -> str:
    return ", then ".join(map(str, numbers))


def _why(faults, results, run=None) -> str:
    """The likely cause of the faults, or ''. run: where messages were counted."""
    whole, unchanged = complete(results), tagged(len(results), len(results[0]))
    size, n = whole.shape
    bounds = chunk_bounds(n, size)
    if all(np.array_equal(got, was) for got, was in zip(results, unchanged, strict=True)):
        return UNCHANGED
    for cause, slip in _slips(size, n).items():
        if all(np.array_equal(got, wrong) for got, wrong in zip(results, slip, strict=True)):
            return cause
    if all(whole[rank, slice(*bounds[size - 1 - rank])].all() for rank in range(size)):
        return "each rank keeps the half that its partner should have."
    if run is not None:
        for rank in range(size):
            partners = [m.dest for m in _sent(run, rank)]
            right = [rank ^ size >> step for step in range(1, size.bit_length())]
            if partners != right:
                order = "the halves are taken in the wrong order: " if partners == right[::-1] else ""
                return (
                    f"{order}rank {rank} sends to rank {_listed(partners)}; the first partner is size / 2 away, "
                    f"the last is 1 away: rank {_listed(right)}."
                )
            sent, halves = [m.nbytes // 8 for m in _sent(run, rank)], _halves(rank, size, n)
            if sent != halves and n % size == 0:
                return _told_sizes(rank, sent, halves, n) + "."
    if n % size and n > size:
        return (
            "equal chunks are right, these are uneven: the halves have to meet where chunk_bounds says, on both "
            "sides of the exchange."
        )
    return ""


def _slips(size: int, n: int) -> dict:
    """Cause → what all ranks' vectors would be with that mistake; of equal chunks."""
    if n % size or size == 1:
        return {}
    return {"the half that is kept is sent; the partner needs the other one.": _halved(size, n, gives=False),
            "what arrives replaces the half that is kept: it needs a buffer of its own, and op.":
                _halved(size, n, own=0),
            "what arrives replaces the half that is kept, and is reduced with itself: it needs a buffer of its own.":
                _halved(size, n, own=0, arrived=2),
            "what arrives is reduced twice.": _halved(size, n, arrived=2)}  # fmt: skip


def _halved(size: int, n: int, gives: bool = True, own: int = 1, arrived: int = 1) -> list:
    """What all ranks hold in the end if in each step a kept half becomes own times itself plus arrived times what
    came: what the partner gives, or what it keeps."""
    data, width, distance = tagged(size, n), n // size, size // 2
    while distance:
        before = [vector.copy() for vector in data]
        for rank in range(size):
            first = rank - rank % (2 * distance)
            lower, upper = (slice(start * width, (start + distance) * width) for start in (first, first + distance))
            keep, other = (upper, lower) if rank & distance else (lower, upper)
            data[rank][keep] = own * before[rank][keep] + arrived * before[rank ^ distance][keep if gives else other]
        distance //= 2
    return data
