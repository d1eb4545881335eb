"""Exercise 7 of lab 01: segments with the lowest peak, held against all others; and what that is for real models."""

from dataclasses import replace

import numpy as np

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, describe_error, likely_in_all
from labs_helpers.transformer.config import SIZES
from labs_helpers.transformer.counts import saved_activations
from labs_helpers.transformer.lab01 import exercises
from labs_helpers.transformer.lab01.checks.place_checkpoints_causes import lowest, peak_causes, sum_causes

# kept and inside in bytes; real layers have 1 : 20 to 1 : 80.
RATIOS = ((1, 4), (1, 1), (1, 2), (2, 3), (1, 8), (1, 17), (3, 70), (1, 70), (2, 1), (3, 2), (5, 1), (40, 1))
GRID = [(layers, *ratio) for layers in range(1, 61) for ratio in RATIOS]

ALONE = "with one layer one segment is possible: range(1, layers + 1)"


@exercise("01/7", "place checkpoints", points=10, minutes=15, reference=exercises.place_checkpoints)
def place_checkpoints(student):
    answers = {shape: _sizes(_text(*shape), student, shape) for shape in GRID}
    # First where the peak is too high; one segment too many tells less.
    for shape in sorted(GRID, key=lambda shape: _is_lowest(shape, answers[shape])):
        _expect_best(_text(*shape), shape, answers)
    yield f"1 to {GRID[-1][0]} layers, kept : inside from 40 : 1 to 1 : 70: the lowest peak in all {len(GRID)} cases"
    for name, without in (("small", ()), ("xl", ("mask", "probabilities"))):
        case = f"{name}, 8 × 1024 tokens in bfloat16" + (", attention's scores never in memory" if without else "")
        shape = real_layers(name, 8, 1024, without)
        sizes = answers[shape] = _sizes(case, student, shape)
        _expect_best(case, shape, answers)
        peaks = (f"{peak(parts, *shape[1:]) / 2**30:.2f} GiB" for parts in (sizes, [shape[0]]))
        yield f"{case}: {len(sizes)} segments, " + "; in one it is ".join(peaks)


def peak(sizes: list[int], kept: int, inside: int) -> int:
    return len(sizes) * kept + max(sizes) * inside


def real_layers(name: str, batch: int, length: int, without: tuple[str, ...] = ()) -> tuple[int, int, int]:
    """(layers, kept, inside) of a model in bfloat16. without: kinds of activations that are not kept."""

    def saved(layers: int) -> int:
        kinds = saved_activations(replace(SIZES[name], layers=layers), batch, length, itemsize=2)
        return sum(nbytes for kind, nbytes in kinds.items() if kind not in without)

    return SIZES[name].layers, 2 * batch * length * SIZES[name].width, saved(2) - saved(1)


def _text(layers: int, kept: int, inside: int) -> str:
    return f"{layers} layer{'s' * (layers > 1)}, kept {kept}, inside {inside}"


def _sizes(case: str, student, shape: tuple[int, int, int]) -> list[int]:
    """The answer, a list, tuple or array of whole numbers, as a list."""
    try:
        answer = student(*shape)
    except Exception as error:
        wrong = describe_error(student, error, case)
        alone = shape[0] == 1 and _answers(student, 5, *shape[1:])
        raise Wrong(case, wrong.found, cause=wrong.causes or ALONE * alone) from error
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


def _answers(student, *shape: int) -> bool:
    try:
        student(*shape)
    except Exception:
        return False
    return True


def _is_lowest(shape: tuple[int, int, int], sizes: list[int]) -> bool:
    return sum(sizes) == shape[0] and peak(sizes, *shape[1:]) == lowest(*shape)[0]


def _expect_best(case: str, shape: tuple[int, int, int], answers: dict) -> None:
    """Raises Wrong unless answers[shape] are all layers, and nothing has a lower peak, or as low a one with less."""
    (layers, kept, inside), sizes = shape, answers[shape]
    if sum(sizes) != layers:
        cause = likely_in_all((sum_causes(*one) for one in answers), list(answers.values()))
        raise Wrong(case, f"{sizes} adds up to {sum(sizes)}, not to {layers}", cause=cause)
    if min(sizes) < 1:
        raise Wrong(case, f"returned {sizes}; a segment has 1 layer or more")
    best, fewest, _ = lowest(*shape)
    found = peak(sizes, kept, inside)
    if (found, len(sizes)) == (best, fewest):
        return
    told = f"{sizes} peaks at {len(sizes)} · {kept:,} + {max(sizes)} · {inside:,} = {found:,} bytes"
    fewer = f"{fewest} segment{'s' * (fewest > 1)} will do for that"
    pairs = [(len(sizes), max(sizes, default=0)) for sizes in answers.values()]
    cause = likely_in_all((peak_causes(*one) for one in answers), pairs)
    advice = "write down the peak for every number of segments, from 1 to `layers`, and find yours among them."
    raise Wrong(case, f"{told}; " + (f"the lowest is {best:,}" if found > best else fewer), cause=cause, advice=advice)
