"""Exercise 7 of lab 01: segments with the lowest peak, held against all others; and what that is for real models."""

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from math import ceil, floor, sqrt

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Candidates, Wrong, likely
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.counts import saved_activations
from labs_helpers.transformer.lab01 import exercises

# kept and inside in bytes; real layers have 1 : 20 to 1 : 80.
RATIOS = ((1, 4), (1, 1), (1, 2), (2, 3), (1, 8), (1, 17), (3, 70), (1, 70), (2, 1), (3, 2), (5, 1), (40, 1))
GRID = [(layers, *ratio) for layers in range(1, 61) for ratio in RATIOS]


@exercise("01/7", "place checkpoints", points=10, minutes=15, reference=exercises.place_checkpoints)
def place_checkpoints(student):
    answers = {shape: _sizes(_text(*shape), student(*shape)) for shape in GRID}
    # First where the peak is too high; one segment too many tells less.
    for shape in sorted(GRID, key=lambda shape: _is_lowest(shape, answers[shape])):
        _expect_best(_text(*shape), shape, answers)
    yield f"1 to {GRID[-1][0]} layers, kept : inside from 40 : 1 to 1 : 70: the lowest peak in all {len(GRID)} cases"
    for name, without in (("small", ()), ("xl", ("mask", "probabilities"))):
        case = f"{name}, 8 × 1024 tokens in bfloat16" + (", attention's scores never in memory" if without else "")
        shape = real_layers(name, 8, 1024, without)
        sizes = answers[shape] = _sizes(case, student(*shape))
        _expect_best(case, shape, answers)
        peaks = (f"{peak(parts, *shape[1:]) / 2**30:.2f} GiB" for parts in (sizes, [shape[0]]))
        yield f"{case}: {len(sizes)} segments, " + "; in one it is ".join(peaks)


def peak(sizes: list[int], kept: int, inside: int) -> int:
    return len(sizes) * kept + max(sizes) * inside


def lowest(layers: int, kept: int, inside: int) -> tuple[int, int, int]:
    """(peak, segments, largest size) of the best sizes, by trying every largest size."""
    return min((-(-layers // size) * kept + size * inside, -(-layers // size), size) for size in range(1, layers + 1))


def real_layers(name: str, batch: int, length: int, without: tuple[str, ...] = ()) -> tuple[int, int, int]:
    """(layers, kept, inside) of a model in bfloat16. without: kinds of activations that are not kept."""

    def saved(layers: int) -> int:
        kinds = saved_activations(replace(SIZES[name], layers=layers), batch, length, itemsize=2)
        return sum(nbytes for kind, nbytes in kinds.items() if kind not in without)

    return SIZES[name].layers, 2 * batch * length * SIZES[name].width, saved(2) - saved(1)


def _text(layers: int, kept: int, inside: int) -> str:
    return f"{layers} layer{'s' * (layers > 1)}, kept {kept}, inside {inside}"


def _sizes(case: str, answer) -> list[int]:
    """`answer`, a list, tuple or array of whole numbers, as a list."""
    try:
        sizes = np.asarray(answer)
    except ValueError:  # lists of several lengths in a list
        sizes = np.zeros((0, 0))
    if sizes.ndim != 1:
        raise Wrong(case, f"returned {answer!r:.80}; a list of sizes is asked for")
    if sizes.size and sizes.dtype.kind not in "iu":
        cause = "a quotient by / is no whole number, one by // is" if sizes.dtype.kind == "f" else ""
        raise Wrong(case, f"returned {answer!r:.80}; sizes are whole numbers", cause=cause)
    return sizes.tolist()


def _is_lowest(shape: tuple[int, int, int], sizes: list[int]) -> bool:
    return sum(sizes) == shape[0] and peak(sizes, *shape[1:]) == lowest(*shape)[0]


def _expect_best(case: str, shape: tuple[int, int, int], answers: dict) -> None:
    """Raises Wrong unless answers[shape] are all layers, and nothing has a lower peak, or as low a one with less."""
    (layers, kept, inside), sizes = shape, answers[shape]
    if sum(sizes) != layers:
        cause = always(sum_causes, list(answers), list(answers.values()))
        raise Wrong(case, f"{sizes} adds up to {sum(sizes)}, not to {layers}", cause=cause)
    if min(sizes) < 1:
        raise Wrong(case, f"returned {sizes}; a segment has 1 layer or more")
    best, fewest, _ = lowest(*shape)
    found = peak(sizes, kept, inside)
    if (found, len(sizes)) == (best, fewest):
        return
    told = f"{sizes} peaks at {len(sizes)} · {kept:,} + {max(sizes)} · {inside:,} = {found:,} bytes"
    fewer = f"{fewest} segment{'s' * (fewest > 1)} will do for that"
    cause = always(peak_causes, list(answers), [(len(sizes), max(sizes, default=0)) for sizes in answers.values()])
    advice = "write down the peak for every number of segments, from 1 to `layers`, and find yours among them."
    raise Wrong(case, f"{told}; " + (f"the lowest is {best:,}" if found > best else fewer), cause=cause, advice=advice)


def always(causes: Callable[..., Candidates], shapes: list, found: list) -> tuple[str, ...]:
    """The causes that give what was found for every one of the shapes."""
    columns = zip(*(causes(*shape) for shape in shapes), strict=True)
    return likely(((column[0][0], [answer for _, answer in column]) for column in columns), lambda a: a == found)


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
        yield "numbers of segments up to `layers` are possible", least(right, range(1, last + 1))
    yield "one segment is possible, too", least(right, range(min(2, layers), layers + 1))
    n = least(right)[0]
    rest = "what is left over goes to the first segments, a layer each"
    yield f"{rest}, not all to one", (n, layers - (n - 1) * (layers // n))
    yield f"{rest}, not to another segment", (n + (layers % n > 0), max(layers // n, layers % n))
