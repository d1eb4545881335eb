"""Exercise 1 of lab 07: the shapes on one rank, for sizes of which no two could be taken for each other."""

from collections.abc import Mapping
from numbers import Integral

from labs_helpers.course.exercise import exercise
from labs_helpers.course.verdict import Wrong, likely
from labs_helpers.course.verdict.messages.python import WHOLE
from labs_helpers.tensor_parallel.lab07 import exercises
from labs_helpers.tensor_parallel.lab07.checks.calls import call
from labs_helpers.tensor_parallel.lab07.checks.shapes_causes import Sizes, causes, clash, right_row

LAYERS = ("fc_q", "fc_k", "fc_v", "fc_o", "fc_o, naive")
FORM = "{layer: (x, weight, out)}"
# In the first two mp_size divides all sizes, so that a wrong one that was divided has a shape, too.
CASES = (Sizes(8, 12, 20, 4), Sizes(6, 15, 21, 3), Sizes(3, 5, 14, 2), Sizes(1, 7, 40, 5), Sizes(2, 3, 8, 1))
ADVICE = "draw x and the weight as rectangles, with both sides written on them, and cut the weight."


@exercise("07/1", "trace the shapes", points=10, minutes=15, reference=exercises.trace_shapes)
def trace_shapes(student):
    for sizes in CASES:
        batch, length, width, mp_size = sizes
        case = f"batch {batch}, length {length}, width {width} on {mp_size} rank{'s' * (mp_size > 1)}"
        table = _table(case, call(case, student, *sizes))
        _expect_right(case, sizes, table)
        yield f"{case}: {4 * width * sizes.part:,} of attention's {4 * width * width:,} weights on each"


def _table(case: str, answer) -> dict:
    """The answer, whose shapes may be tuples or lists, with tuples. Raises Wrong where it is no such table."""
    if not isinstance(answer, Mapping):
        cause = "a return is missing" if answer is None else ""
        raise Wrong(case, f"returned {answer!r:.80}; a dict {FORM} is asked for", cause=cause)
    if answer.keys() != set(LAYERS):
        missing = ", ".join(repr(name) for name in LAYERS if name not in answer)
        extra = ", ".join(f"{name!r:.40}" for name in answer if name not in LAYERS)
        said = "; ".join([f"missing: {missing}"] * bool(missing) + [f"too many: {extra}"] * bool(extra))
        renamed = "the layers' names are those of the docstring, letter by letter" if missing and extra else ""
        raise Wrong(case, said, cause=renamed)
    return {layer: _row(case, layer, answer[layer]) for layer in LAYERS}


def _row(case: str, layer: str, row) -> tuple:
    if not isinstance(row, (tuple, list)) or not all(isinstance(shape, (tuple, list)) for shape in row):
        raise Wrong(case, f"has {row!r:.70} for {layer!r}; {FORM} is asked for, with a tuple for each shape")
    if len(row) != 3:
        raise Wrong(case, f"has {len(row)} shapes for {layer!r}; {FORM} is asked for")
    for name, shape in zip(("x", "weight", "out"), row, strict=True):
        for size in shape:
            if not isinstance(size, Integral) or isinstance(size, bool):
                cause = WHOLE if isinstance(size, float) else ""
                raise Wrong(case, f"{layer}: {name} is {shape!r:.60}; a shape has integers alone", cause=cause)
    shapes = tuple(tuple(map(int, shape)) for shape in row)
    if sorted(map(len, shapes)) == [2, 3, 3] and len(shapes[1]) == 3:
        raise Wrong(case, f"{layer}: {row!r:.90}; the order is (x, weight, out)")
    return shapes


def _expect_right(case: str, sizes: Sizes, table: dict) -> None:
    wrong = [layer for layer in LAYERS if table[layer] != right_row(layer, sizes)]
    if not wrong:
        return
    layer, row, right = wrong[0], table[wrong[0]], right_row(wrong[0], sizes)
    place = next(i for i in range(3) if row[i] != right[i])
    others = f" (and {', '.join(wrong[1:])})" if wrong[1:] else ""
    fitting = likely((*causes(layer, sizes), *_of_other_sizes(layer)), lambda answer: answer == row)
    if wrong == ["fc_o", "fc_o, naive"] and [table[one] for one in wrong] == [
        right_row(one, sizes) for one in wrong[::-1]
    ]:
        fitting = "'fc_o' and 'fc_o, naive' are exchanged"
    raise Wrong(
        case,
        _said(sizes, row[place]),
        _said(sizes, right[place]),
        f"{('x', 'weight', 'out')[place]} of {layer}{others}",
        fitting or clash(row),
        ADVICE,
    )


def _of_other_sizes(layer: str):
    for sizes in CASES:
        yield "these are the shapes for other arguments: work them out from the ones given", right_row(layer, sizes)


def _said(sizes: Sizes, shape: tuple) -> str:
    named = sizes.named(shape)
    return f"{shape}, {named}" if named else f"{shape}"
