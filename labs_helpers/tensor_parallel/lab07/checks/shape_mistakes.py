"""The three shapes that common mistakes give in exercise 1, written as 'x weight out' with one letter per size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

Row = tuple[tuple[int, ...], ...]  # x, weight, out
COLUMNS, ROWS = "blw wp blp", "blp pw blw"  # split on the output, or on the input dimension
RIGHT = dict.fromkeys(("fc_q", "fc_k", "fc_v"), COLUMNS) | {"fc_o": ROWS, "fc_o, naive": COLUMNS}
PART_OUT = (
    "out is this rank's product before anything is collected: width / mp_size columns give width / mp_size features"
)
CUT = "x is split; every rank computes its columns from all features"
INPUT = "this is a layer split on the input dimension, as fc_o is; q, k and v are split on the output dimension"
CLASH = (
    "if fc_o is split on the output dimension like q, k and v, its weight takes width features, but attention gives a "
    "rank width / mp_size. Split on the input dimension, it takes exactly those"
)
NAIVE = (
    "this is 'fc_o, naive', split on the output dimension and with x collected; fc_o takes this rank's slice of "
    "attention's output as it is"
)
COLLECTED = "x is not collected yet, but a weight split on the output dimension takes all features"
AS_O = "this is fc_o, split on the input dimension; the naive scheme splits it on the output dimension"
OF_QKV = (
    (PART_OUT, "blw wp blw"),
    (CUT, "blp wp blp"),
    (INPUT, ROWS),
    (INPUT, "blp pw blp"),
)
OF_LAYER = dict.fromkeys(("fc_q", "fc_k", "fc_v"), OF_QKV) | {
    "fc_o": (
        (CLASH, "blp wp blp"),
        (CLASH, "blp wp blw"),
        (NAIVE, COLUMNS),
        (NAIVE, "blw wp blw"),
        (
            "x is attention's output for this rank's q, k and v; it has as many features as fc_o's weight has rows",
            "blw pw blw",
        ),
        ("out has the full width: a rank computes one term of the sum, not a part of the features", "blp pw blp"),
    ),
    "fc_o, naive": (
        (PART_OUT, "blw wp blw"),
        (COLLECTED, "blp wp blp"),
        (AS_O, ROWS),
        (AS_O, "blp pw blp"),
    ),
}
EVERYWHERE = (  # (sentence, letters of the right row, letters that replace them)
    ("the batch is split; that is data parallelism, the other dimension of the grid", "b", "B"),
    ("the length is split; that is sequence parallelism, another way to split", "l", "L"),
    ("batch and length are one dimension here; x and out keep their three: (batch, length, features)", "bl", "t"),
    ("batch and length are exchanged", "bl", "lb"),
    ("width is divided by mp_size twice", "p", "P"),
    ("it computes width % mp_size, the remainder; the quotient is width // mp_size", "p", "%"),
    ("the part is mp_size wide; it should be width / mp_size wide", "p", "m"),
    ("width is multiplied by mp_size; divide it", "p", "M"),
    *((f"width is divided by {n}, whatever mp_size is", "p", f"{n}") for n in (2, 3, 4, 8)),
)


def named_sizes(batch: int, length: int, width: int, mp_size: int) -> dict[str, int]:
    """Map each letter to its size, including the letters and digits of EVERYWHERE."""
    part = width // mp_size
    sizes = {"b": batch, "l": length, "w": width, "p": part, "m": mp_size, "M": width * mp_size, "t": batch * length}
    divided = {"B": batch // mp_size, "L": length // mp_size, "P": part // mp_size, "%": width % mp_size}
    return sizes | divided | {f"{n}": width // n for n in (2, 3, 4, 8)}


def row(shapes: str, *sizes: int) -> Row:
    """Return the three shapes of a row such as 'blw wp blp' for these sizes."""
    named = named_sizes(*sizes)
    return tuple(tuple(named[letter] for letter in shape) for shape in shapes.split())


def mistakes(layer: str) -> list[tuple[str, Callable[..., Row]]]:
    """Return pairs of a sentence and a function that maps the exercise's arguments to the layer's row."""
    return [(sentence, partial(row, shapes)) for sentence, shapes in _mistakes(layer)]


def _mistakes(layer: str) -> Iterator[tuple[str, str]]:
    right = RIGHT[layer]
    x, weight, out = right.split()
    yield from OF_LAYER[layer]
    linear = (
        "the weight is (output, input), as PyTorch's nn.Linear stores it; with out = x @ weight it is (input, output)"
    )
    if layer != "fc_o":  # where it has the shapes of CLASH
        yield linear, f"{x} {weight[::-1]} {out}"
    yield "x and out are exchanged", f"{out} {weight} {x}"
    yield "nothing is split: this is the whole layer", "blw ww blw"
    yield "the weight is the whole matrix; a rank holds 1 / mp_size of it", f"{x} ww {out}"
    yield "the weight is split on both dimensions; split it on one", f"{x} pp {out}"
    yield from ((sentence, right.replace(old, new)) for sentence, old, new in EVERYWHERE)


def clash(answer: Row) -> str:
    """Describe the shapes of a row that do not fit, or return '' if x @ weight gives out."""
    x, weight, out = answer
    if (len(x), len(weight), len(out)) != (3, 2, 3):
        return "x and out are (batch, length, features), a weight is (input, output)"
    if x[-1] != weight[0]:
        return f"x has {x[-1]} features and the weight {weight[0]} rows, so x @ weight cannot be computed"
    product = (*x[:-1], weight[1])
    return "" if product == out else f"x @ weight has shape {product}, but out has {out}"
