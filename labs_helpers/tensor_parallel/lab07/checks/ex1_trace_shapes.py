"""Check exercise 1 of lab 07: the shapes on one rank, for sizes that are all different."""

from collections.abc import Mapping
from functools import partial
from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong
from labs_helpers.course.verdict.messages.python import WHOLE
from labs_helpers.course.verdict.pure_functions import Case, judge
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.shape_mistakes import RIGHT, clash, mistakes, named_sizes, row

FORM = "{layer: (x, weight, out)}"
NAMES = {"b": "batch", "l": "length", "w": "width", "p": "width / mp_size", "m": "mp_size", "t": "batch · length"}
NAMES |= {"B": "batch / mp_size", "L": "length / mp_size", "M": "width · mp_size"}
# In the first two mp_size divides all sizes, so dividing the wrong one also gives whole numbers.
SIZES = (8, 12, 20, 4), (6, 15, 21, 3), (3, 5, 14, 2), (1, 7, 40, 5), (2, 3, 8, 1)
ADVICE = "draw x and the weight as rectangles, label both sides of each, and split the weight"


@exercise("07/1", "trace the shapes", points=10, minutes=15, reference=exercises.trace_shapes)
def trace_shapes(student):
    cases = []
    for batch, length, width, mp_size in SIZES:
        name = f"batch {batch}, length {length}, width {width} on {mp_size} rank{'s' * (mp_size > 1)}"
        line = f"{name}: {4 * width * (width // mp_size):,} of attention's {4 * width * width:,} weights on each"
        sizes = (batch, length, width, mp_size)
        cases.append(Case(name, sizes, {layer: row(shapes, *sizes) for layer, shapes in RIGHT.items()}, line))
    for layer in RIGHT:
        silent = [case._replace(line="") for case in cases]
        yield from _judge_layer(student, layer, cases if layer == "fc_o, naive" else silent)


def _judge_layer(student, layer, cases):
    return judge(
        student,
        lambda *sizes: _table(student(*sizes)),
        cases,
        [(sentence, lambda *sizes, made=made: {layer: made(*sizes)}) for sentence, made in mistakes(layer)],
        same=lambda found, right: found[layer] == right[layer],
        told=partial(_told, layer),
        otherwise=lambda case, answer: clash(answer[layer]),
        advice=ADVICE,
    )


def _table(answer) -> dict:
    """Return the answer with all shapes as tuples; raise Wrong unless it is a table of shapes."""
    if not isinstance(answer, Mapping):
        cause = "a return is missing" if answer is None else ""
        raise Wrong("", f"returned {answer!r:.80}; expected a dict {FORM}", cause=cause)
    names = {"missing": RIGHT.keys() - answer.keys(), "too many": answer.keys() - RIGHT.keys()}
    if any(names.values()):
        said = [f"{what}: {', '.join(sorted(map(repr, some)))}" for what, some in names.items() if some]
        renamed = "spell the layers' names exactly as the docstring does" if len(said) == 2 else ""
        raise Wrong("", "; ".join(said), cause=renamed)
    return {layer: _row(layer, answer[layer]) for layer in RIGHT}


def _row(layer: str, shapes) -> tuple:
    form = isinstance(shapes, (tuple, list)) and all(isinstance(shape, (tuple, list)) for shape in shapes)
    if not form or len(shapes) != 3:
        raise Wrong("", f"has {shapes!r:.70} for {layer!r}; expected {FORM}, with a tuple for each shape")
    for size in (size for shape in shapes for size in shape):
        if not isinstance(size, Integral) or isinstance(size, bool):
            cause = WHOLE if isinstance(size, float) else ""
            raise Wrong("", f"has {shapes!r:.70} for {layer!r}; sizes are integers", cause=cause)
    if sorted(map(len, shapes)) == [2, 3, 3] and len(shapes[1]) == 3:
        raise Wrong("", f"has {shapes!r:.90} for {layer!r}; the order is (x, weight, out)")
    return tuple(tuple(map(int, shape)) for shape in shapes)


def _told(layer: str, case: Case, answer: dict) -> tuple[str, str, str]:
    wrong = [one for one in RIGHT if answer[one] != case.right[one]]
    also = f" (and {', '.join(wrong[1:])})" if wrong[1:] else ""
    pairs = zip(("x", "weight", "out"), answer[layer], case.right[layer], strict=True)
    name, found, right = next(one for one in pairs if one[1] != one[2])
    letters = {size: letter for letter, size in reversed(named_sizes(*case.arguments).items()) if letter in NAMES}

    def said(shape) -> str:
        known = all(size in letters for size in shape)
        return f"{shape}" + known * f", ({', '.join(NAMES[letters[size]] for size in shape if known)})"

    return said(found), said(right), f"{name} of {layer}{also}"
