"""What common mistakes make of an operation's bytes and FLOPs, and of their times at the roofs."""

from __future__ import annotations

import math
from collections.abc import Iterator

from labs_helpers.course.verdict import Candidates
from labs_helpers.measure.trace import Event
from labs_helpers.transformer.lab01.checks.operation_costs import (
    ITEMSIZE,
    Cost,
    Part,
    Roofs,
    cost,
    inputs,
    is_product,
    listed,
    result,
)

LIKE = "the result is like the largest input: the most elements, and of equal ones the widest"
ONLY_PRODUCTS = "only aten::mm and aten::bmm multiply; every other operation is like its largest input"
OWN = "a product has FLOPs and a result of its own: 2 · M · N · K, and M × N"


def share_causes(operation: Event, us: float, roofs: Roofs) -> Candidates:
    right = cost(operation)
    longer, shorter = max(right.us(roofs)), min(right.us(roofs))
    yield "the shorter time was taken: the operation cannot be faster than the longer one", shorter / us
    yield "FLOPs never decide: the longer of the two times counts", right.us(roofs)[0] / us
    never = "bytes never decide: the longer of the two times counts, and no // makes a 0 of theirs"
    yield never, right.us(roofs)[1] / us
    for digits in (1, 2, 3):
        yield "a share is not rounded", round(longer / us, digits)
    added = "the two times were added: bytes move while FLOPs are computed, so the longer one counts"
    yield added, sum(right.us(roofs)) / us
    yield "share is the roof's time / us, and not us / the roof's time", us / longer if longer else math.nan
    for factor in (1e-6, 1e-12):
        yield "us is in µs, peak and bandwidth are per second", factor * longer / us
    yield "us is in µs, not in ms", 1e-3 * longer / us
    yield "a share is asked for, not percent", 100 * longer / us
    swapped = Roofs(roofs.bandwidth, roofs.peak)
    yield "FLOPs go with the peak, and bytes with the bandwidth", max(right.us(swapped)) / us
    yield "share may exceed 1, where a cache serves the operation: it is not cut off", min(1.0, longer / us)
    if longer < 0.3 * us:
        yield 'the share that was reached is asked for, also where bound is "neither"', 0.0
    yield "the share that was reached is asked for, not the rest", 1 - longer / us
    for sentence, other in (*_byte_causes(operation), *_flop_causes(operation)):
        yield sentence, max(other.us(roofs)) / us


def _byte_causes(operation: Event) -> Iterator[tuple[str, Cost]]:
    flops, moved = cost(operation)
    given, written = inputs(operation), result(operation)
    parts = [*given, written]
    yield "the result is written too", Cost(flops, moved - written.bytes)
    yield "the inputs are read too", Cost(flops, written.bytes)
    yield "bytes are elements times itemsize", Cost(flops, sum(part.elements for part in parts))
    yield "the result is written once", Cost(flops, moved + written.bytes)
    yield "bytes are asked for, not bits", Cost(flops, 8 * moved)
    for size in (2, 4, 8):
        everywhere = f"{size} bytes per element were taken everywhere: each input has those of its type"
        yield everywhere, Cost(flops, size * sum(part.elements for part in parts))
    single = [kind for shape, kind in listed(operation) if not shape]
    for other in (0, 4, 8):
        sizes = [ITEMSIZE.get(kind, other) for kind in single]
        empty = Part(1, max(sizes)) if sizes and not given else Part(0, 0)
        numbers = "what has the shape [] is no input, and counts nothing"
        yield numbers, Cost(flops + empty.elements, moved + sum(sizes) + empty.bytes)
    if not given:
        return
    for one in (given[0], max(given)):
        yield "every input is read, not one alone", Cost(flops, one.bytes + written.bytes)
    if not is_product(operation):
        spread = sum(max(part.elements for part in given) * part.itemsize for part in given)
        yield "an input is read once, also where it is smaller than the result", Cost(flops, spread + written.bytes)
    yield "an input is read once", Cost(flops, moved + sum(part.bytes for part in given))
    likes = [
        given[0],
        given[-1],
        min(given),
        max(given, key=lambda part: part.itemsize),
        max(given, key=lambda part: part.bytes),
    ]
    likes += [Part(written.elements, itemsize) for itemsize in (2, 4, *(part.itemsize for part in given))]
    for like in likes:
        other = Cost(flops if is_product(operation) else like.elements, moved - written.bytes + like.bytes)
        yield (OWN if is_product(operation) else LIKE), other
    as_all = Part(sum(part.elements for part in given), written.itemsize)
    yield (
        "one result is written, as large as the largest input, not as all of them",
        Cost(flops, moved - written.bytes + as_all.bytes),
    )


def _flop_causes(operation: Event) -> Iterator[tuple[str, Cost]]:
    flops, moved = cost(operation)
    given = inputs(operation)
    if not is_product(operation):
        yield "what is no product does one FLOP per element, not two", Cost(2 * flops, moved)
        yield "one FLOP per element of the largest input, not of all", Cost(sum(part.elements for part in given), moved)
        yield "one FLOP per element, not per byte", Cost(result(operation).bytes, moved)
        yield "every other operation does a FLOP per element of its result", Cost(0, moved)
        if operation["name"] == "aten::addmm":
            shapes = [shape for shape, _ in listed(operation)]
            for a, b in (shapes[:2], shapes[1:3]):
                product = math.prod(a[:-1]) * b[-1]
                changed = moved + (product - result(operation).elements) * given[0].itemsize
                yield ONLY_PRODUCTS, Cost(2 * product * a[-1], changed)
        return
    *batch, M, K = operation["args"]["Input Dims"][0]
    B, N = math.prod(batch), operation["args"]["Input Dims"][1][-1]
    yield "a product multiplies and adds: 2 · M · N · K", Cost(flops / 2, moved)
    for each in (1, 2):
        yield "each element of a product takes K multiplications and additions", Cost(each * B * M * N, moved)
    for bytes_too in (moved / B, moved, moved - (B - 1) * M * N * given[0].itemsize):
        yield "every matrix of the batch counts: its bytes, its FLOPs, its result", Cost(flops / B, bytes_too)
        yield "every matrix of the batch counts: its bytes, its FLOPs, its result", Cost(flops, bytes_too)
    yield "both inputs have the same batch: it counts once", Cost(flops * B, moved)
    yield "the inner size, K, counts once", Cost(flops * K, moved)
    columns = moved + B * M * (K - N) * given[0].itemsize
    for bytes_too in (moved, columns):
        yield "N, the number of columns, is the last size of the second input", Cost(2 * B * M * K * K, bytes_too)
    yield OWN, Cost(max(given).elements, sum(part.bytes for part in given) + max(given).bytes)


def bound_causes(at_bytes: float, at_flops: float, us: float) -> Candidates:
    """Where the share is right."""
    longer = "bytes" if at_bytes > at_flops else "FLOPs"
    if max(at_bytes, at_flops) < 0.3 * us:
        yield 'a share below 0.3 is "neither"', longer
    else:
        yield 'a share of 0.3 or more is not "neither"', "neither"
        yield "the bound is what takes longer at its roof", {"bytes": "FLOPs", "FLOPs": "bytes"}[longer]
    for other in ("Bytes", "byte", "memory", "bandwidth", "flops", "Flops", "FLOPS", "FLOP", "compute", "None", None):
        yield '"bytes", "FLOPs" or "neither" is asked for, in these words', other
