"""Vectors whose sums tell what is in them: which ranks' parts, how often, and of which element."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.course.verdict.wrong import Wrong

_PLACE = 2**36  # below it a hexadecimal digit a rank, above it the element's number: exact in float64


@dataclass(frozen=True)
class Fault:
    """The first wrong element of a rank. `kind`: unwritten, strange, elsewhere or parts; `missing` and `repeated`:
    ranks whose part is in the sum not at all, or more than once."""

    rank: int
    element: int
    chunk: int
    kind: str
    said: str
    missing: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()


def tagged(size: int, n: int) -> list[np.ndarray]:
    """A float64 vector of n elements a rank; a sum of them can be read by `fault`. At most 8 ranks, 4,000 elements."""
    return [float(16**rank) + _PLACE * np.arange(1.0, n + 1) for rank in range(size)]


def arguments(*columns) -> list[tuple]:
    """The arguments of each rank. columns: a list with one value a rank, or something that all ranks get."""
    size = next(len(column) for column in columns if isinstance(column, list))
    return list(zip(*(column if isinstance(column, list) else [column] * size for column in columns), strict=True))


def unwritten(n: int, dtype=np.float64) -> np.ndarray:
    """n elements as they are before anybody has written them: NaN, or −99 where there is no NaN."""
    return np.full(n, np.nan if np.issubdtype(dtype, np.floating) else -99, dtype)


def fault(rank: int, got: np.ndarray, size: int, start: int, stop: int) -> Fault | None:
    """What is wrong with got[start:stop], which should be the sum of `tagged(size, len(got))`; None if nothing is."""
    expected = sum(tagged(size, len(got)))
    wrong = np.flatnonzero(got[start:stop] != expected[start:stop])
    if not wrong.size:
        return None
    element = start + int(wrong[0])
    bounds = chunk_bounds(len(got), size)
    chunk = next(i for i, (a, b) in enumerate(bounds) if a <= element < b)
    return Fault(rank, element, chunk, *read(got[element], size, element))


def read(value: float, size: int, element: int) -> tuple:
    """(kind, said, missing, repeated) of a Fault: what `value` is, where a sum of `tagged` should be."""
    if np.isnan(value):
        return "unwritten", "never written"
    number = int(value)
    counts = [number >> 4 * rank & 15 for rank in range(size)]
    place, total = number // _PLACE, sum(counts)
    if number < 0 or not total or place % total or number % _PLACE >> 4 * size:
        return "strange", f"{value:g}, which is no sum of the ranks' elements"
    if place != total * (element + 1):
        return "elsewhere", (
            f"rank {counts.index(1)}'s element {place - 1}"
            if total == 1
            else "a sum with parts of other elements in it"
        )
    missing = tuple(rank for rank in range(size) if counts[rank] == 0)
    repeated = tuple(rank for rank in range(size) if counts[rank] > 1)
    said = [f"rank {rank}'s part is missing" for rank in missing]
    said += [f"rank {rank}'s part is in it {counts[rank]} times" for rank in repeated]
    return "parts", "; ".join(said), missing, repeated


def expect_sum(case: str, results, ranges, cause) -> None:
    """Raises Wrong unless each rank's result is the sum of `tagged` within its range.

    results: a vector a rank. ranges: (start, stop) a rank, what that rank has to hold. cause: a function of the Faults,
    one for each rank that is wrong, and of the results, that gives the likely cause, or ''.
    """
    size = len(results)
    faults = [
        found
        for rank, (got, (start, stop)) in enumerate(zip(results, ranges, strict=True))
        if (found := fault(rank, got, size, start, stop))
    ]
    if not faults:
        return
    first = faults[0]
    where = f"rank {first.rank}, element {first.element} (chunk {first.chunk}): {first.said}."
    others = f"\nWrong as well: {_ranks([f.rank for f in faults[1:]])}." if faults[1:] else ""
    why = cause(faults, results)
    raise Wrong(case, where + others + (f"\nLikely cause: {why}" if why else ""))


def complete(results) -> np.ndarray:
    """bool (size, n): which element of which rank is the whole sum of `tagged`."""
    return np.stack([got == sum(tagged(len(results), len(got))) for got in results])


def below_zero(size: int, n: int) -> list[np.ndarray]:
    """An int32 vector of n elements a rank, all negative, each rank's the largest somewhere."""
    return [np.array([-10 * (i + 1) - (7 * rank + 3 * i) % 5 for i in range(n)], np.int32) for rank in range(size)]


def expect_maximum(case: str, results, sends, ranges) -> None:
    """Raises Wrong unless each rank's result is the maximum of `sends` within its range."""
    for rank, (got, (start, stop)) in enumerate(zip(results, ranges, strict=True)):
        here = slice(start, stop)
        expect_equal(
            case,
            rank,
            got[here],
            np.max(sends, 0)[here],
            {
                "a sum, whatever op is: use op, not +": np.sum(sends, 0)[here],
                "a zero is in it: start from a rank's vector, not from zeros": np.zeros_like(got[here]),
                "only the rank's own part is in it": sends[rank][here],
            },
        )


def expect_equal(case: str, rank: int, got, expected, suspects: dict) -> None:
    """Raises Wrong unless the arrays are equal. suspects: cause → what it would have given."""
    if np.array_equal(got, expected):
        return
    element = int(np.flatnonzero(got != expected)[0])
    causes = [text for text, value in suspects.items() if np.array_equal(got, value, equal_nan=got.dtype.kind == "f")]
    texts = [f"{value[element]:g}" for value in (got, expected)]
    if texts[0] == texts[1]:
        texts = [repr(value[element].item()) for value in (got, expected)]
    raise Wrong(
        case,
        f"rank {rank}, element {element} is {texts[0]}, expected {texts[1]}"
        + (f"\nLikely cause: {causes[0]}" if causes else ""),
    )


def expect_unchanged(case: str, sends, before) -> None:
    """Raises Wrong if a rank's `send` is no longer what it was."""
    for rank, (send, was) in enumerate(zip(sends, before, strict=True)):
        if not np.array_equal(send, was):
            raise Wrong(
                case,
                f"rank {rank}'s send was overwritten: element {np.flatnonzero(send != was)[0]} is "
                "another. Nothing may be written or received into send; `work = send` gives it another "
                "name and copies nothing.",
            )


def _ranks(ranks: list[int]) -> str:
    return "rank " + str(ranks[0]) if len(ranks) == 1 else "ranks " + ", ".join(map(str, ranks))
