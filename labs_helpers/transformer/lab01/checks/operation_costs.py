"""An operation's bytes and FLOPs by exercise 4's rules, and their times at the roofs."""

from __future__ import annotations

import math
from typing import NamedTuple

from labs_helpers.measure.trace import Event

ITEMSIZES = {8: ("double", "long int"), 4: ("float", "int"), 2: ("c10::BFloat16", "c10::Half"), 1: ("bool",)}
ITEMSIZE = {kind: size for size, kinds in ITEMSIZES.items() for kind in kinds}


class Roofs(NamedTuple):
    peak: float  # FLOP/s
    bandwidth: float  # bytes/s


class Cost(NamedTuple):
    flops: float
    bytes: float

    def us(self, roofs: Roofs) -> tuple[float, float]:
        """The time of the bytes and that of the FLOPs, each at its roof."""
        return 1e6 * self.bytes / roofs.bandwidth, 1e6 * self.flops / roofs.peak


class Part(NamedTuple):
    """An input or the result."""

    elements: int
    itemsize: int

    @property
    def bytes(self) -> int:
        return self.elements * self.itemsize


def inputs(operation: Event) -> list[Part]:
    return [Part(math.prod(shape), ITEMSIZE[kind]) for shape, kind in listed(operation) if shape and kind in ITEMSIZE]


def result(operation: Event) -> Part:
    """The largest input, of equal ones the widest, or the product of the first two."""
    given = inputs(operation)
    if not is_product(operation):
        return max(given, default=Part(0, 0))
    a, b = operation["args"]["Input Dims"][:2]
    return Part(math.prod(a[:-1]) * b[-1], given[0].itemsize)


def is_product(operation: Event) -> bool:
    return operation["name"] in ("aten::mm", "aten::bmm")


def cost(operation: Event) -> Cost:
    written = result(operation)
    inner = 2 * operation["args"]["Input Dims"][0][-1] if is_product(operation) else 1
    return Cost(inner * written.elements, sum(part.bytes for part in inputs(operation)) + written.bytes)


def listed(operation: Event) -> list[tuple[list, str]]:
    """(shape, type) of all that stands there."""
    return list(zip(operation["args"]["Input Dims"], operation["args"]["Input type"], strict=True))
