"""What common mistakes make of a layer's three shapes in exercise 1."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

Shape = tuple[int, ...]
Row = tuple[Shape, Shape, Shape]  # x, weight, out

LINEAR = "the weight is (output, input), as PyTorch's nn.Linear stores it; with out = x @ weight it is (input, output)"
INPUT = "this is a layer split on the input dimension, as fc_o is; q, k and v are split on the output dimension"
OUTPUT = (
    "this is 'fc_o, naive', split on the output dimension and with x collected; fc_o takes what attention made on this "
    "rank, as it is"
)


class Sizes(NamedTuple):
    batch: int
    length: int
    width: int
    mp_size: int

    @property
    def part(self) -> int:
        return self.width // self.mp_size

    def shaped(self, features: int) -> Shape:
        return self.batch, self.length, features

    def named(self, shape: Shape) -> str:
        """'(width, width / mp_size)', of sizes that differ from each other; '' where one of them has no name."""
        names = {self.batch * self.length: "batch · length"}
        for name in ("batch", "length", "width"):
            whole = getattr(self, name)
            names |= {whole * self.mp_size: f"{name} · mp_size"}
            names |= {} if whole % self.mp_size else {whole // self.mp_size: f"{name} / mp_size"}
        names |= {size: name for name, size in self._asdict().items()}
        return f"({', '.join(names[size] for size in shape)})" if names.keys() >= set(shape) else ""


def right_row(layer: str, sizes: Sizes) -> Row:
    whole, part = sizes.shaped(sizes.width), sizes.shaped(sizes.part)
    if layer == "fc_o":
        return part, (sizes.part, sizes.width), whole
    return whole, (sizes.width, sizes.part), part


def causes(layer: str, sizes: Sizes) -> Iterator[tuple[str, Row]]:
    """Candidates: what the layer's row would be."""
    right, (batch, length, width, mp_size), part = right_row(layer, sizes), sizes, sizes.part
    x, weight, out = right
    yield from _of_layer(layer, sizes)
    yield LINEAR, (x, weight[::-1], out)
    yield "x and out are exchanged", (out, weight, x)
    whole = sizes.shaped(width)
    yield "nothing is split: this is the whole layer", (whole, (width, width), whole)
    yield "the weight is the whole one; a rank has 1 / mp_size of it", (x, (width, width), out)
    for last in (out, sizes.shaped(part)):
        yield "the weight is split on both dimensions; it is split on one", (x, (part, part), last)
    everywhere = sizes.shaped(width), sizes.shaped(part)
    for first in everywhere:
        for last in everywhere:
            for matrix in ((width, width), weight):
                rows = "the {} is split: that is {}; the ranks of one model all have all rows of x"
                fewer, shorter = batch // mp_size, length // mp_size
                yield (
                    rows.format("batch", "data parallelism, the grid's other direction"),
                    ((fewer, *first[1:]), matrix, (fewer, *last[1:])),
                )
                yield (
                    rows.format("length", "sequence parallelism, another way to split"),
                    ((batch, shorter, first[2]), matrix, (batch, shorter, last[2])),
                )
    rows = "batch and length are one dimension here; x and out keep their three: (batch, length, features)"
    yield rows, ((batch * length, x[2]), weight, (batch * length, out[2]))
    yield rows, (x, weight, (batch * length, out[2]))
    yield "batch and length are exchanged", ((length, batch, x[2]), weight, (length, batch, out[2]))
    yield "width is divided by mp_size twice", _divided(layer, sizes, part // mp_size)
    yield "it is width % mp_size, the remainder; the quotient is width // mp_size", _divided(layer, sizes, 0)
    for ranks in sorted({2, 3, 4, 8} - {mp_size}):
        yield f"width is divided by {ranks}, whatever mp_size is", _divided(layer, sizes, width // ranks)
    yield "the part is mp_size wide; mp_size ranks share the width", _divided(layer, sizes, mp_size)
    yield "width is multiplied by mp_size; it is divided by it", _divided(layer, sizes, width * mp_size)


def _of_layer(layer: str, sizes: Sizes) -> Iterator[tuple[str, Row]]:
    """What is a mistake in this layer alone."""
    width, part = sizes.width, sizes.part
    whole, slice_ = sizes.shaped(width), sizes.shaped(part)
    columns, rows = (width, part), (part, width)
    if layer == "fc_o":
        clash = (
            f"split on the output dimension, as q, k and v are, fc_o's weight is {columns}: it takes {width} features, "
            f"and attention gives a rank {part}. Split on the input dimension it takes these {part}"
        )
        yield clash, (slice_, columns, slice_)
        yield clash, (slice_, columns, whole)
        yield OUTPUT, (whole, columns, slice_)
        yield OUTPUT, (whole, columns, whole)
        own = f"x is what attention made of this rank's q, k and v: {part} wide, and fc_o's rows take just that"
        yield own, (whole, rows, whole)
        summed = f"(…, {part}) @ {rows} is {width} wide: a rank has a part of the sum, not of the features"
        yield summed, (slice_, rows, slice_)
        return
    own = f"out is the product of this rank, before anything is collected: its {part} columns make {part} features"
    yield own, (whole, columns, whole)
    if layer == "fc_o, naive":
        collected = f"x is not collected yet, and a {columns} weight takes all {width} features"
        yield collected, (slice_, columns, slice_)
        yield f"{collected}; and out is collected already", (slice_, columns, whole)
        as_o = "this is fc_o, split on the input dimension; naive, it is split on the output dimension"
        yield as_o, (slice_, rows, whole)
        yield as_o, (slice_, rows, slice_)
        return
    cut = f"x is cut; every rank computes its columns from all {width} features"
    yield cut, (slice_, columns, slice_)
    yield f"{cut}; and out is whole", (slice_, columns, whole)
    yield INPUT, (slice_, rows, whole)
    yield INPUT, (slice_, rows, slice_)


def _divided(layer: str, sizes: Sizes, part: int) -> Row:
    """The right row with another width of a part."""

    def other(shape: Shape) -> Shape:
        return tuple(part if size == sizes.part else size for size in shape)

    x, weight, out = right_row(layer, sizes)
    return other(x), other(weight), other(out)


def clash(row: Row) -> str:
    """What does not fit within a row, '' where x @ weight is out."""
    x, weight, out = row
    if (len(x), len(weight), len(out)) != (3, 2, 3):
        return "x and out are (batch, length, features), a weight is (input, output)"
    if x[-1] != weight[0]:
        return f"x is {x[-1]} wide and the weight {weight[0]} high: x @ weight cannot be computed"
    product = (*x[:-1], weight[1])
    return "" if product == out else f"x @ weight is {product}, out is {out}"
