"""Compute an operation's bytes and FLOPs by exercise 4's rules, and the shares that common mistakes produce."""

from __future__ import annotations

import math
from typing import NamedTuple

from labs_helpers.course.verdict import Candidates
from labs_helpers.course.verdict.pure_functions import Case
from labs_helpers.measure.trace import Event

ITEMSIZES = {8: ("double", "long int"), 4: ("float", "int"), 2: ("c10::BFloat16", "c10::Half"), 1: ("bool",)}
ITEMSIZE = {kind: size for size, kinds in ITEMSIZES.items() for kind in kinds}

LIKE = "the result is like the largest input: the one with the most elements and, if equal, the widest type"
ONLY_PRODUCTS = "only aten::mm and aten::bmm multiply; every other operation is like its largest input"
OWN = "for a product, count 2 · M · N · K FLOPs and a result of M × N"
NUMBERS = "an entry with shape [] is not an input and counts nothing"
BATCH = "every matrix of the batch counts: count the bytes, FLOPs and result of each"
ADDED = "the two times were added: bytes move while FLOPs are computed, so only the longer time counts"


class Cost(NamedTuple):
    flops: float
    bytes: float

    def us(self, peak: float, bandwidth: float) -> tuple[float, float]:
        """Return the time of the bytes and of the FLOPs, each at its roof."""
        return 1e6 * self.bytes / bandwidth, 1e6 * self.flops / peak


class Operand(NamedTuple):
    """An input, or the result."""

    elements: int
    itemsize: int

    @property
    def bytes(self) -> int:
        return self.elements * self.itemsize


def listed(operation: Event) -> list[tuple[list, str]]:
    """Return (shape, type) of every entry."""
    return list(zip(operation["args"]["Input Dims"], operation["args"]["Input type"], strict=True))


def inputs(operation: Event) -> list[Operand]:
    every = listed(operation)
    return [Operand(math.prod(shape), ITEMSIZE[kind]) for shape, kind in every if shape and kind in ITEMSIZE]


def is_product(operation: Event) -> bool:
    return operation["name"] in ("aten::mm", "aten::bmm")


def result(operation: Event) -> Operand:
    """Return the result: the largest input (of equal ones the widest), or the product of the first two."""
    given = inputs(operation)
    if not is_product(operation):
        return max(given, default=Operand(0, 0))
    a, b = operation["args"]["Input Dims"][:2]
    return Operand(math.prod(a[:-1]) * b[-1], given[0].itemsize)


def cost(operation: Event) -> Cost:
    written = result(operation)
    inner = 2 * operation["args"]["Input Dims"][0][-1] if is_product(operation) else 1
    return Cost(inner * written.elements, sum(part.bytes for part in inputs(operation)) + written.bytes)


def right(operation: Event, us: float, peak: float, bandwidth: float) -> tuple[str, float]:
    """Return (bound, share)."""
    at_bytes, at_flops = cost(operation).us(peak, bandwidth)
    share = max(at_bytes, at_flops) / us
    return "neither" if share < 0.3 else "bytes" if at_bytes > at_flops else "FLOPs", share


def bound(operation: Event, us: float, peak: float, bandwidth: float) -> Candidates:
    at_bytes, at_flops = cost(operation).us(peak, bandwidth)
    longer, other = ("bytes", "FLOPs") if at_bytes > at_flops else ("FLOPs", "bytes")
    share = max(at_bytes, at_flops) / us
    yield 'a share below 0.3 is "neither"', longer
    for least in (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0):
        yield 'a share of 0.3 or more is not "neither"', "neither" if share < least else longer
    yield "the bound is whichever takes longer at its roof", "neither" if share < 0.3 else other


def shares(operation: Event, us: float, peak: float, bandwidth: float) -> Candidates:
    at_bytes, at_flops = cost(operation).us(peak, bandwidth)
    longer = max(at_bytes, at_flops)
    for sentence, time in (
        ("the shorter time was taken: the operation cannot be faster than the longer one", min(at_bytes, at_flops)),
        ("the result never depends on FLOPs: use the longer of the two times", at_bytes),
        ("the result never depends on bytes: use the longer of the two times; does // round theirs to 0?", at_flops),
        (ADDED, at_bytes + at_flops),
        ("us is in µs, peak and bandwidth are per second", 1e-6 * longer),
        ("us is in µs, peak and bandwidth are per second", 1e-12 * longer),
        ("us is in µs, not in ms", 1e-3 * longer),
        ("return a share, not a percentage", 100 * longer),
        ("divide FLOPs by the peak, and bytes by the bandwidth", max(cost(operation).us(bandwidth, peak))),
        ("share may exceed 1 if a cache serves the operation: do not limit it", min(us, longer)),
        ('return the share that was reached, even if bound is "neither"', longer * (longer >= 0.3 * us)),
        ("return the share that was reached, not the rest", us - longer),
        *((sentence, max(other.us(peak, bandwidth))) for sentence, other in _costs(operation)),
    ):
        yield sentence, time / us
    yield "share is the roof's time / us, and not us / the roof's time", us / (longer or 1e-99)
    for digits in (1, 2, 3):
        yield "do not round the share", round(longer / us, digits)


def _costs(operation: Event) -> Candidates:
    flops, moved = right = cost(operation)
    given, written, product = inputs(operation) or [Operand(0, 0)], result(operation), is_product(operation)
    parts, widest = [*given, written], max(given, key=lambda part: part.itemsize)
    elements, read = sum(part.elements for part in given), moved - written.bytes
    yield "the result is written too", Cost(flops, read)
    yield "the inputs are read too", Cost(flops, written.bytes)
    yield "bytes are elements times itemsize", Cost(flops, sum(part.elements for part in parts))
    yield "the result is written once", Cost(flops, moved + written.bytes)
    for size in (2, 4, 8):
        everywhere = f"{size} bytes per element are used for every input: use those of each input's type"
        yield everywhere, Cost(flops, size * sum(part.elements for part in parts))
    for other in (0, 4, 8):
        sizes = [ITEMSIZE.get(kind, other) for shape, kind in listed(operation) if not shape]
        alone = Operand(1, max(sizes)) if sizes and not inputs(operation) else Operand(0, 0)
        yield NUMBERS, Cost(flops + alone.elements, moved + sum(sizes) + alone.bytes)
    for nbytes in (given[0].bytes, max(given).bytes, read - given[0].bytes, read - given[-1].bytes):
        yield "every input is read", Cost(flops, nbytes + written.bytes)
    spread = sum(max(given).elements * part.itemsize for part in given) + written.bytes
    yield "an input is read once, even if it is smaller than the result", right if product else Cost(flops, spread)
    yield "an input is read once", Cost(flops, moved + read)
    likes = [given[0], given[-1], min(given), widest, max(given, key=lambda part: part.bytes)]
    for like in likes:
        yield OWN, Cost(flops, read + like.bytes) if product else right
    for like in (*likes, *(Operand(written.elements, size) for size in (2, 4, given[0].itemsize, given[-1].itemsize))):
        yield LIKE, right if product else Cost(like.elements, read + like.bytes)
    all_of_them = "one result is written: it is as large as the largest input, not as all inputs together"
    yield all_of_them, Cost(flops, read + elements * written.itemsize)
    for sentence, other in (
        ("an operation that is not a product does one FLOP per element, not two", 2 * flops),
        ("count one FLOP per element of the largest input, not of all inputs", elements),
        ("count one FLOP per element, not per byte", written.bytes),
        ("every other operation does one FLOP per element of its result", 0),
    ):
        yield sentence, right if product else Cost(other, moved)
    for at in (0, 1):
        shapes = [shape for shape, _ in listed(operation)][at : at + 2]
        size = math.prod(shapes[0][:-1]) * shapes[1][-1] if operation["name"] == "aten::addmm" else 0
        changed = Cost(2 * size * shapes[0][-1], read + size * given[0].itemsize) if size else right
        yield ONLY_PRODUCTS, changed
    *batch, M, K = operation["args"]["Input Dims"][0] if product else (1, 1)
    N, B, size = operation["args"]["Input Dims"][-1][-1] if product else 1, math.prod(batch), given[0].itemsize
    for sentence, *other in (
        ("a product multiplies and adds: 2 · M · N · K", flops / 2, moved),
        ("each element of a product takes K multiplications and additions", B * M * N, moved),
        ("each element of a product takes K multiplications and additions", 2 * B * M * N, moved),
        *((BATCH, count, nbytes) for count in (flops, flops / B) for nbytes in (moved / B, read + M * N * size)),
        (BATCH, flops / B, moved),
        ("both inputs share one batch dimension: count it once", flops * B, moved),
    ):
        yield sentence, Cost(*other) if product else right
    for names in (("aten::mm", "aten::bmm"), ("aten::bmm",)):
        like = Cost(max(given).elements, read + max(given).bytes)
        yield OWN, like if operation["name"] in names else right


def implied(case: Case, found: float) -> str:
    """Return the bytes or FLOPs that a share implies at the slower roof, if they are a whole number; else ''."""
    operation, us, peak, bandwidth = case.arguments
    right = cost(operation)
    at_bytes, at_flops = right.us(peak, bandwidth)
    what, there, roof = ("bytes", right.bytes, bandwidth) if at_bytes > at_flops else ("FLOPs", right.flops, peak)
    stands_for = found * us * roof / 1e6
    off = round(stands_for) - there
    if not off or abs(stands_for - round(stands_for)) > 1e-6 * stands_for:
        return ""
    parts = {f"input {i}": part.bytes for i, part in enumerate(inputs(operation), start=1)}
    parts["the result"] = result(operation).bytes
    like = [name for name, nbytes in parts.items() if nbytes == abs(off) and what == "bytes"]
    says = f", as many as {like[0]} has" if len(like) == 1 else ""
    many = f"{abs(off):,} {'too many' if off > 0 else 'are missing'}{says}"
    return f"the share is that of {round(stands_for):,} {what}; there are {there:,}: {many}"
