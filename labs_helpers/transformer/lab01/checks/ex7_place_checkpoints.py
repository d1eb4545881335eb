"""Check exercise 7 of lab 01: segments with the lowest peak, compared with all others, and with those of real
models."""

from dataclasses import replace

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.pure_functions import Case, Part, judge_parts
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.counts import saved_activations
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.place_checkpoints_mistakes import lowest, peaks, sums

# kept and inside in bytes; real layers have 1 : 20 to 1 : 80.
RATIOS = ((1, 4), (1, 1), (1, 2), (2, 3), (1, 8), (1, 17), (3, 70), (1, 70), (2, 1), (3, 2), (5, 1), (40, 1))
GRID = [(layers, *ratio) for layers in range(1, 61) for ratio in RATIOS]
ALONE = (r"^(Value|Index|ZeroDivision)Error", "one layer allows one segment: use range(1, layers + 1)")
ADVICE = "write down the peak for every number of segments, from 1 to `layers`, and find yours among them."


def told_sum(case, sizes):
    if sum(sizes) == case.arguments[0]:
        return (f"returned {sizes}; a segment needs at least 1 layer",)
    return (f"{sizes} adds up to {sum(sizes)}, not to {case.arguments[0]}",)


def told_peak(case, pair):
    _, kept, inside = case.arguments
    (segments, largest), (best, fewest, _) = pair, lowest(*case.arguments)
    peak = segments * kept + largest * inside
    told = f"{segments} segments of {largest} layers at most peak at {segments} · {kept:,} + {largest} · {inside:,}"
    fewer = f"{fewest} segment{'s' * (fewest > 1)} will do for that"
    return (f"{told} = {peak:,} bytes; " + (f"the lowest is {best:,}" if peak > best else fewer),)


PARTS = [Part(lambda answer: answer[0], sums, told_sum), Part(lambda answer: answer[1], peaks, told_peak)]


@exercise("01/7", "place checkpoints", points=10, minutes=15, reference=exercises.place_checkpoints)
def place_checkpoints(student):
    def read(layers, kept, inside):
        """Return the sizes if they do not cover all layers, else None; and the number of segments with the largest
        size."""
        sizes = _whole_numbers(student(layers, kept, inside))
        return sizes if sum(sizes) != layers or min(sizes) < 1 else None, (len(sizes), max(sizes, default=0))

    cases = [_case(_text(*shape), shape) for shape in GRID]
    said = f"1 to {GRID[-1][0]} layers, kept : inside from 40 : 1 to 1 : 70: the lowest peak in all {len(GRID)} cases"
    cases[-1] = cases[-1]._replace(line=said)
    for name, without in (("small", ()), ("xl", ("mask", "probabilities"))):
        case = f"{name}, 8 × 1024 tokens in bfloat16" + (", attention's scores never in memory" if without else "")
        layers, kept, inside = shape = real_layers(name, 8, 1024, without)
        best, segments, _ = lowest(*shape)
        peaks = f"{best / 2**30:.2f} GiB; in one it is {(kept + layers * inside) / 2**30:.2f} GiB"
        cases.append(_case(case, shape)._replace(line=f"{case}: {segments} segments, {peaks}"))
    yield from judge_parts(student, read, cases, PARTS, advice=ADVICE)


def _case(name: str, shape: tuple[int, int, int]) -> Case:
    return Case(name, shape, (None, lowest(*shape)[1:]), errors=[ALONE] * (shape[0] == 1))


def real_layers(name: str, batch: int, length: int, without: tuple[str, ...] = ()) -> tuple[int, int, int]:
    """Return (layers, kept, inside) of a model in bfloat16. without: kinds of activations that are not kept."""

    def saved(layers: int) -> int:
        kinds = saved_activations(replace(SIZES[name], layers=layers), batch, length, itemsize=2)
        return sum(nbytes for kind, nbytes in kinds.items() if kind not in without)

    return SIZES[name].layers, 2 * batch * length * SIZES[name].width, saved(2) - saved(1)


def _text(layers: int, kept: int, inside: int) -> str:
    return f"{layers} layer{'s' * (layers > 1)}, kept {kept}, inside {inside}"


def _whole_numbers(answer) -> list[int]:
    """Return the answer, a list, tuple or array of whole numbers, as a list."""
    try:
        sizes = np.asarray(answer)
    except ValueError:  # a list of lists with different lengths
        sizes = np.zeros((0, 0))
    if sizes.ndim != 1:
        raise Wrong("", f"returned {answer!r:.80}; return a list of sizes")
    if sizes.size and sizes.dtype.kind not in "iu":
        cause = "/ returns a float, // an int" if sizes.dtype.kind == "f" else ""
        raise Wrong("", f"returned {answer!r:.80}; sizes must be whole numbers", cause=cause)
    return sizes.tolist()
