"""What common mistakes make of a layer's three shapes in exercise 1, written as 'x weight out', a letter for a size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

Row = tuple[tuple[int, ...], ...]  # x, weight, out
COLUMNS, ROWS = "blw wp blp", "blp pw blw"  # split on the output, or on the input dimension
RIGHT = dict.fromkeys(("fc_q", "fc_k", "fc_v"), COLUMNS) | {"fc_o": ROWS, "fc_o, naive": COLUMNS}
PART_OUT = (
    "out is the product of this rank, before anything is collected: its width / mp_size columns make as many features"
)
CUT = "x is cut; every rank computes its columns from all features"
INPUT = "this is a layer split on the input dimension, as fc_o is; q, k and v are split on the output dimension"
CLASH = (
    "split on the output dimension, as q, k and v are, fc_o's weight takes width features, and attention gives a rank "
    "width / mp_size. Split on the input dimension it takes that"
)
NAIVE = (
    "this is 'fc_o, naive', split on the output dimension and with x collected; fc_o takes what attention made on this "
    "rank, as it is"
)
COLLECTED = "x is not collected yet, and a weight split on the output dimension takes all features"
AS_O = "this is fc_o, split on the input dimension; naive, it is split on the output dimension"
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
        ("x is what attention made of this rank's q, k and v, as wide as fc_o's weight is high", "blw pw blw"),
        ("out is as wide as the whole: a rank has a part of the sum, not of the features", "blp pw blp"),
    ),
    "fc_o, naive": (
        (PART_OUT, "blw wp blw"),
        (COLLECTED, "blp wp blp"),
        (AS_O, ROWS),
        (AS_O, "blp pw blp"),
    ),
}
EVERYWHERE = (  # what is replaced by what in the right row
    ("the batch is split: that is data parallelism, the grid's other direction", "b", "B"),
    ("the length is split: that is sequence parallelism, another way to split", "l", "L"),
    ("batch and length are one dimension here; x and out keep their three: (batch, length, features)", "bl", "t"),
    ("batch and length are exchanged", "bl", "lb"),
    ("width is divided by mp_size twice", "p", "P"),
    ("it is width % mp_size, the remainder; the quotient is width // mp_size", "p", "%"),
    ("the part is mp_size wide; mp_size ranks share the width", "p", "m"),
    ("width is multiplied by mp_size; it is divided by it", "p", "M"),
    *((f"width is divided by {n}, whatever mp_size is", "p", f"{n}") for n in (2, 3, 4, 8)),
)


def named_sizes(batch: int, length: int, width: int, mp_size: int) -> dict[str, int]:
    """Each size by its letter; those of EVERYWHERE and digits too."""
    part = width // mp_size
    sizes = {"b": batch, "l": length, "w": width, "p": part, "m": mp_size, "M": width * mp_size, "t": batch * length}
    divided = {"B": batch // mp_size, "L": length // mp_size, "P": part // mp_size, "%": width % mp_size}
    return sizes | divided | {f"{n}": width // n for n in (2, 3, 4, 8)}


def row(shapes: str, *sizes: int) -> Row:
    """The three shapes of 'blw wp blp', for these sizes."""
    named = named_sizes(*sizes)
    return tuple(tuple(named[letter] for letter in shape) for shape in shapes.split())


def mistakes(layer: str) -> list[tuple[str, Callable[..., Row]]]:
    """Pairs of a sentence and a function of the exercise's arguments, which returns the layer's row."""
    return [(sentence, partial(row, shapes)) for sentence, shapes in _mistakes(layer)]


def _mistakes(layer: str) -> Iterator[tuple[str, str]]:
    right = RIGHT[layer]
    x, weight, out = right.split()
    yield from OF_LAYER[layer]
    linear = (
        "the weight is (output, input), as PyTorch's nn.Linear stores it; with out = x @ weight it is (input, output)"
    )
    if layer != "fc_o":  # there it is CLASH
        yield linear, f"{x} {weight[::-1]} {out}"
    yield "x and out are exchanged", f"{out} {weight} {x}"
    yield "nothing is split: this is the whole layer", "blw ww blw"
    yield "the weight is the whole one; a rank has 1 / mp_size of it", f"{x} ww {out}"
    yield "the weight is split on both dimensions; it is split on one", f"{x} pp {out}"
    yield from ((sentence, right.replace(old, new)) for sentence, old, new in EVERYWHERE)


def clash(answer: Row) -> str:
    """What does not fit within a row, '' where x @ weight is out."""
    x, weight, out = answer
    if (len(x), len(weight), len(out)) != (3, 2, 3):
        return "x and out are (batch, length, features), a weight is (input, output)"
    if x[-1] != weight[0]:
        return f"x is {x[-1]} wide and the weight {weight[0]} high: x @ weight cannot be computed"
    product = (*x[:-1], weight[1])
    return "" if product == out else f"x @ weight is {product}, out is {out}"
