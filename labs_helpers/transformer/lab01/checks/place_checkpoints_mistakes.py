"""Compute the best checkpoints, and what common mistakes make of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import accumulate
from math import ceil, floor, sqrt

from labs_helpers.course.verdict import Candidates
from labs_helpers.transformer.lab01 import exercises

FRACTION = (
    "the root is the best real number; another whole number may be better, because the peak changes in steps: try each"
)
UP = "round layers / segments up: the largest segment counts"
REST = "give the remaining layers to the first segments, one each"


def lowest(layers: int, kept: int, inside: int) -> tuple[int, int, int]:
    """Return (peak, segments, largest size) of the best sizes, by trying every largest size."""
    return min((-(-layers // size) * kept + size * inside, -(-layers // size), size) for size in range(1, layers + 1))


def sums(layers: int, kept: int, inside: int) -> Candidates:
    """Return sizes that do not add up to `layers`; None if they do."""
    _, n, largest = lowest(layers, kept, inside)
    size, larger = divmod(layers, n)
    ends = list(accumulate(exercises.place_checkpoints(layers, kept, inside)))
    for sentence, sizes in (
        ("the remainder, layers % segments, is lost: give one more layer to that number of segments", n * [size]),
        ("every segment is rounded up: only layers % segments of them get one more layer", n * [largest]),
        ("layers % segments of them get one more layer, not the others", larger * [size] + (n - larger) * [size + 1]),
        ("the number of segments and their size are swapped", largest * [n]),
        ("the number of segments and their size were returned, not a list of all sizes", [n, largest]),
        ("only the largest size was returned", [largest]),
        ("one segment is [layers]; [] contains no segment", [] if n == 1 else [layers]),
        *(
            ("the layers where segments begin or end were returned, not the sizes", places)
            for places in (ends, ends[:-1], [0, *ends], [0, *ends[:-1]])
        ),
    ):
        yield sentence, sizes if sum(sizes) != layers else None


def peaks(layers: int, kept: int, inside: int) -> Candidates:
    """Return (segments, largest size) for each mistake."""

    def number(n: float) -> tuple[int, int]:
        n = min(max(int(n), 1), layers)
        return n, of(n)

    def size(n: float) -> tuple[int, int]:
        return number(n)[::-1]

    def least(key: Callable[[int], float], numbers: Iterable[int] = range(1, layers + 1)) -> tuple[int, int]:
        return number(min(numbers, key=key, default=1))

    def of(n: int) -> int:  # the largest of n segments
        return -(-layers // n)

    def right(n: int) -> int:
        return n * kept + of(n) * inside

    yield (
        "you use one segment, as if `inside` did not count: then all layers' activations exist at the same time",
        number(1),
    )
    yield "you use one segment per layer, as if `kept` did not count: then every layer's input is kept", number(layers)
    for n in range(2, 9):
        yield "the number is fixed: it depends on layers, kept and inside", number(n)
        yield "the size is fixed: it depends on layers, kept and inside", size(n)
    root, best_number, best_size = sqrt(layers), sqrt(layers * inside / kept), sqrt(layers * kept / inside)
    for made, best in ((number, best_number), (size, best_size)):
        for whole in (round, floor, ceil):
            yield "√layers segments are best only if kept and inside are equal", made(whole(root))
            yield FRACTION, made(whole(best))
            yield "kept and inside are swapped in the root", made(whole(layers / best))
        yield FRACTION, min(made(floor(best)), made(ceil(best)), key=lambda pair: pair[0] * kept + pair[1] * inside)
    divisors = [n for n in range(1, layers + 1) if layers % n == 0]
    rises = [n for n in range(1, layers) if right(n + 1) >= right(n)]
    yield UP, least(lambda n: n * kept + layers // n * inside)
    yield UP, least(lambda n: n * kept + layers / n * inside)
    yield UP, least(lambda n: n * kept + round(layers / n) * inside)
    yield "kept and inside are swapped", least(lambda n: n * inside + of(n) * kept)
    yield "the number of segments and their size are swapped", number(least(right)[0])[::-1]
    once = least(lambda n: n * kept + of(n) * (inside + kept))
    yield "a segment's input is kept once, not for each of its layers", once
    larger = least(lambda n: max(n * kept, of(n) * inside))
    yield "inputs and activations exist at the same time: take their sum, not the larger of the two", larger
    yield "of several numbers with the lowest peak, use the smallest", least(lambda n: (right(n), -n))
    yield "you chose the number with the highest peak", least(lambda n: -right(n))
    yield "the peak may rise and fall again: go on to the last number", number(min(rises, default=layers))
    yield "segments may differ in size: the number need not divide `layers`", least(right, divisors)
    for last in (layers - 1, layers // 2, floor(root)):
        yield "numbers of segments up to `layers` are possible: range(1, layers + 1)", least(right, range(1, last + 1))
    yield "one segment is possible, too", least(right, range(min(2, layers), layers + 1))
    n = least(right)[0]
    yield f"{REST}, not all to one", (n, layers - (n - 1) * (layers // n))
    yield f"{REST}, not to another segment", (n + (layers % n > 0), max(layers // n, layers % n))
