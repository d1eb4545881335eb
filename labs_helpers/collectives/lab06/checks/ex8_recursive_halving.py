"""Check the transfer exercise of lab 06: a reduce-scatter in log2(N) steps."""

from functools import partial

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06.checks import vectors
from labs_helpers.collectives.lab06.checks.on_ranks import called, counted, on_ranks, sent_by_each
from labs_helpers.collectives.lab06.checks.vectors import in_place, tagged
from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong

ERRORS = (
    (
        r"^IndexError: list index",
        "a range of chunks ends after the last one: the first partner is size / 2 away, and the distance halves",
    ),
)


@exercise("06/8", "transfer: recursive halving", points=25, minutes=20)
def recursive_halving(student):
    for case, size, n in (
        ("2 ranks, 8 elements", 2, 8),
        ("4 ranks, 16 elements", 4, 16),
        ("1 rank", 1, 5),
        ("8 ranks, 27 elements, chunks of 4 and of 3", 8, 27),
        ("8 ranks, 5 elements, three chunks empty", 8, 5),
    ):
        own = in_place(tagged(size, n), np.add)
        run = on_ranks(case, student, called, own, errors=ERRORS)
        for rank in range(size):
            _expect_steps(case, run, rank, np.count_nonzero(_halves(rank, size, n)))
        vectors.expect_sum(case, *vectors.results(own), causes(size, n), partial(_messages_cause, run))
        for rank in range(size):
            _expect_halves(case, rank, [m.nbytes // 8 for m in run.messages if m.source == rank], size, n)
        yield f"{case}: {sent_by_each(run)}"
    yield vectors.check_maximum(student, in_place)
    yield vectors.check_real_ranks(student, in_place, 4, 1001)


def _expect_steps(case: str, run, rank: int, least: int) -> None:
    """Raise Wrong unless `rank` sent log2(size) messages, or the `least` that are not empty."""
    count, steps = run.messages_sent[rank], len(_distances(run.size))
    if not least <= count <= steps:
        why = "a step is missing: the distance has to halve until it is 1" if count < steps else ""
        if count == run.size - 1 and all((m.dest - m.source) % run.size == 1 for m in run.messages):
            why = "this is a ring; here the partner of each step is rank ^ distance"
        asked = f"log2({run.size}) = {steps} are asked for"
        raise Wrong(case, f"rank {rank} sends {counted(count, 'message')}, {asked}", cause=why)


def _distances(size: int) -> list[int]:
    """Return how far the partner of each step is."""
    return [size >> step for step in range(1, size.bit_length())]


def _halves(rank: int, size: int, n: int) -> list[int]:
    """Return how many elements `rank` should send in each step: the chunks of its partner's half."""
    bounds, counts = chunk_bounds(n, size), []
    for distance in _distances(size):
        first = (rank ^ distance) // distance * distance
        counts.append(bounds[first + distance - 1][1] - bounds[first][0])
    return counts


def _expect_halves(case: str, rank: int, sent: list[int], size: int, n: int) -> None:
    """Raise Wrong unless each step sends half. sent: the elements of each message of `rank`."""
    halves = _halves(rank, size, n)
    if sum(sent) != sum(halves):
        whole = ", the whole vector" if set(sent) == {n} else ""
        enough = f"half of the vector, then a quarter and so on are enough: {_listed(halves)}"
        raise Wrong(case, f"rank {rank} sends {_listed(sent)} elements{whole}; {enough}")


def _listed(numbers) -> str:
    return ", then ".join(map(str, numbers))


def causes(size: int, n: int):
    """Return cause → all ranks' data, for equal chunks."""
    if n % size:
        return
    data, replaced = tagged(size, n), "arriving data replaces the kept half"
    yield vectors.UNCHANGED, data
    yield "the kept half is sent; the partner needs the other one", _halved(data, gives=False)
    yield "each rank keeps the half that its partner should have", _halved(data[::-1])[::-1]
    yield f"{replaced}: receive it into a separate buffer, and use op", _halved(data, own=0)
    yield f"{replaced}, and is reduced with itself: receive it into a separate buffer", _halved(data, own=0, arrived=2)
    yield "arriving data is reduced twice", _halved(data, arrived=2)
    moves = "a rank that keeps the upper half has to move its range up by `distance`"
    yield f"{moves}; here it stays", _halved(data, moves=lambda rank, distance: 0)
    yield f"{moves}, and only there", _halved(data, moves=lambda rank, distance: distance)
    bit = "a rank keeps the upper half if its bit `distance` is set: test rank & distance, without a comparison"
    yield bit, _halved(data, upper=int.__ge__)
    yield bit, _halved(data, upper=int.__ge__, moves=lambda rank, distance: distance * (rank >= distance))


def _halved(data, gives: bool = True, own: int = 1, arrived: int = 1, upper=int.__and__, moves=int.__and__) -> list:
    """Return all ranks' final data if each step turns the kept half into own × itself + arrived × what came: the
    partner's given half, or its kept half. upper(rank, distance): True if the rank keeps the upper half of its
    range; moves(rank, distance): by how many chunks the range's start then moves."""
    data, width = [vector.copy() for vector in data], len(data[0]) // len(data)
    firsts = [0] * len(data)
    for distance in _distances(len(data)):
        before, halves = [vector.copy() for vector in data], []
        for rank, first in enumerate(firsts):
            lower, higher = (slice((first + by) * width, (first + by + distance) * width) for by in (0, distance))
            halves.append((higher, lower) if upper(rank, distance) else (lower, higher))
            firsts[rank] += moves(rank, distance)
        for rank, vector in enumerate(data):
            kept, (its, given) = halves[rank][0], halves[rank ^ distance]
            part = before[rank ^ distance][given if gives else its]
            if len(part) == len(vector[kept]):
                vector[kept] = own * vector[kept] + arrived * part
    return data


def _messages_cause(run, wrong) -> str:
    """Return the cause of wrong values that the messages reveal."""
    for rank in range(run.size):
        partners = [m.dest for m in run.messages if m.source == rank]
        right = [rank ^ distance for distance in _distances(run.size)]
        if partners != right:
            order = "the halves are split in the wrong order: " if partners == right[::-1] else ""
            first_and_last = f"the first partner is size / 2 away, the last is 1 away: rank {_listed(right)}"
            return f"{order}rank {rank} sends to rank {_listed(partners)}; {first_and_last}"
    return vectors.chunk_cause(wrong)
