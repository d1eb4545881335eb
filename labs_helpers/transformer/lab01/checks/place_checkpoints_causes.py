"""The best place for checkpoints, and what common mistakes make of it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from math import ceil, floor, sqrt

from labs_helpers.course.verdict import Candidates
from labs_helpers.transformer.lab01 import exercises

NUMBERS = "numbers of segments up to `layers` are possible: range(1, layers + 1)"


def lowest(layers: int, kept: int, inside: int) -> tuple[int, int, int]:
    """(peak, segments, largest size) of the best sizes, by trying every largest size."""
    return min((-(-layers // size) * kept + size * inside, -(-layers // size), size) for size in range(1, layers + 1))


def sum_causes(layers: int, kept: int, inside: int) -> Candidates:
    """Their answers: sizes."""
    _, n, largest = lowest(layers, kept, inside)
    size, larger = divmod(layers, n)
    right = exercises.place_checkpoints(layers, kept, inside)
    yield "what is left over, layers % segments, is lost: as many segments take a layer more", n * [size]
    yield "every segment is rounded up: only layers % segments of them take a layer more", n * [largest]
    yield "layers % segments of them take a layer more, not the others", larger * [size] + (n - larger) * [size + 1]
    yield "the number of segments and their size are swapped", largest * [n]
    yield "the number of segments and their size were returned, not a list of all sizes", [n, largest]
    yield "the largest size alone was returned", [largest]
    yield "one segment is [layers]; [] is none", right if n > 1 else []
    places = "the layers where segments begin or end were returned, not the sizes"
    for ends in (list(accumulate(right)), list(accumulate(right))[:-1]):
        yield places, ends
        yield places, [0, *ends]


def peak_causes(layers: int, kept: int, inside: int) -> Candidates:
    """Their answers: (segments, largest size)."""

    def number(n: float) -> tuple[int, int]:
        n = min(max(int(n), 1), layers)
        return n, -(-layers // n)

    def size(n: float) -> tuple[int, int]:
        return number(n)[::-1]

    def least(key: Callable[[int], float], numbers=range(1, layers + 1)) -> tuple[int, int]:
        return number(min(numbers, key=key, default=1))

    def of(n: int) -> int:  # the largest of n segments
        return -(-layers // n)

    def right(n: int) -> int:
        return n * kept + of(n) * inside

    yield "it is one segment, as if `inside` did not count: then all layers' activations are there at once", number(1)
    yield "it is one segment per layer, as if `kept` did not count: then every layer's input stays", number(layers)
    for n in range(2, 9):
        yield "the number is fixed: it depends on layers, kept and inside", number(n)
        yield "the size is fixed: it depends on layers, kept and inside", size(n)
    alike = "√layers segments are best only where kept and inside are alike"
    fraction = (
        "the root is best among fractions; of whole numbers, where the peak goes in steps, another may be: try each"
    )
    root, best_number, best_size = sqrt(layers), sqrt(layers * inside / kept), sqrt(layers * kept / inside)
    for whole in (round, floor, ceil):
        for made, best in ((number, best_number), (size, best_size)):
            yield alike, made(whole(root))
            yield fraction, made(whole(best))
            yield "kept and inside are swapped in the root", made(whole(layers / best))
    for made, best in ((number, best_number), (size, best_size)):
        yield fraction, min(made(floor(best)), made(ceil(best)), key=lambda pair: pair[0] * kept + pair[1] * inside)
    up = "layers / segments is rounded up: the largest segment counts"
    yield up, least(lambda n: n * kept + layers // n * inside)
    yield up, least(lambda n: n * kept + layers / n * inside)
    yield up, least(lambda n: n * kept + round(layers / n) * inside)
    yield "kept and inside are swapped", least(lambda n: n * inside + of(n) * kept)
    yield "the number of segments and their size are swapped", number(least(right)[0])[::-1]
    once = "a segment's input is kept once, not for each of its layers"
    yield once, least(lambda n: n * kept + of(n) * (inside + kept))
    larger = "inputs and activations are there at once: their sum counts, not the larger of them"
    yield larger, least(lambda n: max(n * kept, of(n) * inside))
    yield "of several numbers with the lowest peak the smallest is asked for", least(lambda n: (right(n), -n))
    yield "it is the number with the highest peak", least(lambda n: -right(n))
    rises = [n for n in range(1, layers) if right(n + 1) >= right(n)]
    yield "the peak may rise and fall again: go on to the last number", number(min(rises, default=layers))
    divisors = [n for n in range(1, layers + 1) if layers % n == 0]
    yield "segments may differ in size: the number need not divide `layers`", least(right, divisors)
    for last in (layers - 1, layers // 2, floor(root)):
        yield NUMBERS, least(right, range(1, last + 1))
    yield "one segment is possible, too", least(right, range(min(2, layers), layers + 1))
    n = least(right)[0]
    rest = "what is left over goes to the first segments, a layer each"
    yield f"{rest}, not all to one", (n, layers - (n - 1) * (layers // n))
    yield f"{rest}, not to another segment", (n + (layers % n > 0), max(layers // n, layers % n))
