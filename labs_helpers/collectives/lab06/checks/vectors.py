"""Vectors whose sums reveal their contents: which ranks' parts they include, how often, and of which element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06.checks.on_ranks import called, left, on_ranks, on_real_ranks
from labs_helpers.course.verdict import Candidates, Wrong, likely
from labs_helpers.course.verdict.compare import BY_HAND
from labs_helpers.course.verdict.holdings import NEVER, OTHER, SAID, holdings
from labs_helpers.course.verdict.picture import NOTHING, Picture
from labs_helpers.course.verdict.trees import Comparison

_PLACE = 2**36  # below it a hexadecimal digit a rank, above it the element's number: exact in float64
UNCHANGED = "data did not change: the function worked on a copy, or did not write op's result back, as out= does"
UNEVEN = "take uneven chunks from chunk_bounds; chunks of n // size lose the last elements"


@dataclass(frozen=True)
class WrongElement:
    """The first wrong element of a sum, and its value. parts: how often the sum includes each rank's element; () if
    it is no such sum. elsewhere: it is a sum of other elements. uneven: the chunks differ in length, and none is
    empty."""

    rank: int
    chunk: int
    uneven: bool
    value: float
    said: str
    parts: tuple[int, ...] = ()
    elsewhere: bool = False

    def is_own(self, rank: int, times: int = 1) -> bool:
        """Return True if it is only `rank`'s element, that many times."""
        return sum(self.parts) == times and self.parts[rank] == times


def tagged(size: int, n: int) -> list[np.ndarray]:
    """Return a float64 vector of n elements per rank whose sums can be decoded. At most 8 ranks and 4,000 elements."""
    return [float(16**rank) + _PLACE * np.arange(1.0, n + 1) for rank in range(size)]


BEYOND = 2**60  # where float64 holds every 256th whole number only
MAXIMUM = "np.maximum, int64 beyond 2**53, all below zero"


def below_zero(size: int, n: int) -> list[np.ndarray]:
    """Return an int64 vector of n elements per rank, all negative; each rank has the largest element somewhere."""
    return [np.array([-10 * (i + 1) - (7 * rank + 3 * i) % 5 for i in range(n)]) - BEYOND for rank in range(size)]


def unwritten(n: int, dtype=np.float64) -> np.ndarray:
    """Return n elements that mark unwritten memory: NaN, or −99 for dtypes without NaN."""
    return np.full(n, np.nan if np.issubdtype(dtype, np.floating) else -99, dtype)


def in_place(vectors, op) -> list[tuple]:
    """Return each rank's arguments (data, op) of a reduce-scatter."""
    return [(vector, op) for vector in vectors]


def into_recv(vectors, op) -> list[tuple]:
    """Return each rank's arguments (send, recv, op) of an all-reduce."""
    return [(vector, unwritten(vector.size, vector.dtype), op) for vector in vectors]


def results(own: list[tuple]) -> tuple[list, list]:
    """Return the vectors with the results of `in_place` or `into_recv`, and the (start, stop) that each must hold."""
    size, n = len(own), own[0][0].size
    return [result for *_, result, _ in own], [(0, n)] * size if len(own[0]) == 3 else chunk_bounds(n, size)


def check_maximum(student, given) -> str:
    """Check the reduction with np.maximum, and return the line to print. given: in_place or into_recv."""
    case, own = MAXIMUM, given(below_zero(4, 10), np.maximum)
    on_ranks(case, student, called, own)
    expect_maximum(case, *results(own))
    return case


def check_real_ranks(student, given, size: int, n: int) -> str:
    """Check the reduction of n elements on `size` real ranks, and return the line to print."""
    case = f"the same function on {size} real ranks"
    expect_sum(case, *results(on_real_ranks(case, student, left, given(tagged(size, n), np.add))))
    return case


def expect_sum(case: str, found, ranges, causes: Candidates = (), otherwise=lambda wrong: "") -> None:
    """Raise Wrong unless each rank's vector is the sum of `tagged` within its range.

    found: one vector per rank. ranges: one (start, stop) per rank. causes: cause → all ranks' vectors. otherwise: a
    function of the WrongElement that returns the cause if none of them fits, or ''.
    """
    size, n = np.shape(found)
    off = np.argwhere(_inside(ranges, n) & (found != sum(tagged(size, n))))
    if off.size:
        rank, element = map(int, off[0])
        wrong = _wrong_element(rank, element, found[rank][element], size, n)
        ranks = f" Wrong on ranks {', '.join(map(str, np.unique(off[:, 0])))}." if (off[:, 0] != rank).any() else ""
        raise Wrong(
            case,
            f"rank {rank}, element {element} (chunk {wrong.chunk}): {wrong.said}.{ranks}",
            cause=likely(causes, lambda outcome: np.array_equal(found, outcome, equal_nan=True)) or otherwise(wrong),
            advice=f"follow element {element} through the steps by hand: which rank has what of it, and when?",
            picture=_contributions(found, ranges),
        )


def _contributions(found, ranges) -> Picture:
    """Whose parts each rank holds of each chunk: of the first element that is wrong, or else of the first."""
    size, n = np.shape(found)
    right, inside = found == sum(tagged(size, n)), _inside(ranges, n)
    expected, got, kinds = [[""] * size for _ in found], [[""] * size for _ in found], np.full((size, size), NOTHING)
    for rank in range(size):
        for chunk, (start, stop) in enumerate(chunk_bounds(n, size)):
            if start == stop:
                continue
            asked = inside[rank, start:stop].any()
            element = start + int((~right[rank, start:stop]).argmax())
            expected[rank][chunk] = "Σ" if asked else ""
            wrong = _wrong_element(rank, element, found[rank][element], size, n)
            parts = ",".join(str(part) for part, times in enumerate(wrong.parts) for _ in range(times))
            got[rank][chunk] = (
                "Σ" if right[rank, element] else NEVER if wrong.said == "never written" else parts or OTHER
            )
            kinds[rank, chunk] = SAID.index(
                "not asked for" if not asked else "right" if right[rank, element] else "wrong"
            )
    title = f"{int((kinds == SAID.index('wrong')).any(1).sum())} of {size} ranks lack a finished sum"
    below = f"Whose parts are in it; Σ: each rank's once, {NEVER}: never written, {OTHER}: something else."
    return holdings(title, expected, got, kinds, below)


def _inside(ranges, n: int) -> np.ndarray:
    """Return bool (rank, element): True for elements within the rank's (start, stop)."""
    return np.array([[start <= element < stop for element in range(n)] for start, stop in ranges], bool)


def _wrong_element(rank: int, element: int, value: float, size: int, n: int) -> WrongElement:
    """Decode `value`, which stands where a sum of `tagged` should be."""
    chunk = next(chunk for chunk, (_, stop) in enumerate(chunk_bounds(n, size)) if element < stop)
    place = rank, chunk, bool(n % size and n > size), value
    if np.isnan(value):
        return WrongElement(*place, "never written")
    number = int(value)
    parts, at = tuple(number >> 4 * part & 15 for part in range(size)), number // _PLACE
    total = sum(parts)
    if number < 0 or not total or at % total or number % _PLACE >> 4 * size:
        return WrongElement(*place, f"{value:g}, which is no sum of the ranks' elements")
    if at != total * (element + 1):
        single = f"rank {parts.index(1)}'s element {at - 1}" if total == 1 else ""
        return WrongElement(*place, single or "a sum that includes other elements", elsewhere=True)
    said = [f"rank {part}'s part is missing" for part, times in enumerate(parts) if not times]
    said += [f"rank {part}'s part is in it {times} times" for part, times in enumerate(parts) if times > 1]
    return WrongElement(*place, "; ".join(said), parts)


def chunk_cause(wrong: WrongElement) -> str:
    """Return the cause that chunks suggest if nothing more exact fits."""
    if wrong.uneven:
        return UNEVEN
    return "parts of two different chunks were combined: one was stored in another's place" if wrong.elsewhere else ""


def expect_maximum(case: str, found, ranges) -> None:
    """Raise Wrong unless each rank's vector is the maximum of `below_zero` within its range."""
    found, sends = np.array(found), np.array(below_zero(*np.shape(found)))
    inside = _inside(ranges, found.shape[1])

    def causes():
        yield "it is a sum, whatever op is: use op, not +", np.where(inside, sends.sum(0), found)
        yield "it includes a zero: start from a rank's vector, not from zeros", np.where(inside, 0, found)
        yield "it includes only the rank's own part", np.where(inside, sends, found)
        largest = sends.max(0).astype(float).astype(int)
        rounded = "an intermediate vector is float64, which rounds large integers: np.empty_like(…), or dtype="
        yield rounded, np.where(inside, largest, found)

    expect_results(case, found, np.where(inside, sends.max(0), found), causes())


def expect_results(case: str, found: np.ndarray, expected: np.ndarray, causes: Candidates) -> None:
    """Raise Wrong unless (rank, element) of `found` equals `expected`, NaN for NaN. causes: of the same form."""
    answers = ((sentence, list(answer)) for sentence, answer in causes)
    Comparison("rank {0}'s result", advice=BY_HAND).expect(case, list(found), list(expected), lambda: answers)


def expect_unchanged(case: str, sends, before) -> None:
    """Raise Wrong if a rank's `send` has changed."""
    for rank, (send, was) in enumerate(zip(sends, before, strict=True)):
        if not np.array_equal(send, was):
            raise Wrong(
                case,
                f"rank {rank}'s send was overwritten.",
                cause="something is written, reduced or received into send; `work = send` gives it another name and "
                "copies nothing",
            )
