"""Mistakes round the ring, and what would come of each: from the wrong values to their cause."""

from __future__ import annotations

import numpy as np

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.lab06.checks.values import complete, tagged

UNCHANGED = (
    "data is as it was, although messages came: a copy of it was worked on, or what op returns was not "
    "written back, as out= does."
)


def why_not_scattered(faults, results) -> str:
    """The likely cause of a reduce-scatter's faults, or ''."""
    size, n = len(results), len(results[0])
    for cause, slip in _scatter_slips(size, n).items():
        if _same(results, slip):
            return cause
    if n % size and n > size:
        return (
            "equal chunks are right, these are uneven; chunks of n // size lose the last elements, chunk_bounds "
            "gives them to the first chunks."
        )
    if faults[0].kind == "elsewhere":
        return "the parts of two different chunks were reduced into one another."
    return ""


def why_not_gathered(faults, results) -> str:
    """The likely cause of an all-reduce's faults, or ''."""
    whole, first = complete(results), faults[0]
    size, n = whole.shape
    for cause, slip in _gather_slips(size, n):
        if _same(results, slip):
            return cause
    own = [whole[rank, slice(*bounds)].all() for rank, bounds in enumerate(chunk_bounds(n, size))]
    if first.kind == "unwritten" and not whole.any():
        return "recv is never filled: it starts as a copy of send, and both functions work in it."
    if n % size and n > size:
        return "equal chunks are right, these are uneven; chunks of n // size lose the last elements."
    if not all(own):
        return (
            "not even the ranks' own chunks are finished: the all-gather writes into them, or the reduce-scatter "
            "did not run, or worked in another vector."
        )
    if n >= size and (whole.mean(1) < 1.5 / size).all():
        return "only the ranks' own chunks are finished: the all-gather does not run, or what it receives gets nowhere."
    if first.kind == "elsewhere":
        return "a chunk arrives in another chunk's place."
    return (
        "the all-gather sends chunks that are not finished yet, or a step is missing: begin with chunk `rank`, and "
        "go on with the one that has just arrived."
    )


def _same(results, slip) -> bool:
    return all(np.array_equal(got, wrong) for got, wrong in zip(results, slip, strict=True))


def _scatter_slips(size: int, n: int) -> dict:
    """Cause → what all ranks' vectors would be after a ring reduce-scatter with that mistake; of equal chunks."""
    if n % size or size == 1:
        return {UNCHANGED: tagged(size, n)} if size > 1 else {}

    def ring(**mistake):
        return _ring(tagged(size, n), **mistake)

    slips = {
        UNCHANGED: tagged(size, n),
        "a step too few: with N ranks there are N − 1.": ring(steps=size - 2),
        "a step too many: with N ranks there are N − 1.": ring(steps=size),
        "what arrives replaces the chunk instead of being reduced into it.": ring(adds=False),
        "a step receives the same chunk that it sends; what arrives is the one before.": ring(received=-1),
        "the wrong way round the ring: data[…] goes to the right, what arrives comes from the left.": ring(way=-1),
    }
    for by in range(1, size):
        sign, far = ("+", by) if by <= size // 2 else ("−", size - by)
        slips[f"each rank ends with chunk rank {sign} {far}, not with its own: all chunk indices are off by {far}."] = (
            ring(sent=by - 1, received=by - 2)
        )
    return slips


def _gather_slips(size: int, n: int) -> list:
    """(cause, what all ranks' recv would be) of an all-reduce made of two rings, either way round; of equal chunks."""
    if n % size or size == 1:
        return []
    slips = []
    for turn in (1, -1):  # the direction of the ring

        def scatter(data, turn=turn):
            return _ring(data, turn=turn, way=turn)

        def gather(data, turn=turn, adds=False):
            return _ring(data, sent=0, received=-1, turn=turn, way=turn, adds=adds)

        start = tagged(size, n)
        slips += [
            ("the reduce-scatter runs twice, and the second one adds up sums.", gather(scatter(scatter(start)))),
            (
                "the all-gather runs before the reduce-scatter; the chunks are not finished then.",
                scatter(gather(start)),
            ),
            (
                "what arrives replaces the chunk; it is not reduced into it a second time.",
                gather(scatter(start), adds=True),
            ),
        ]
    return slips


def _ring(data, steps=None, sent: int = -1, received: int = -2, way: int = 1, adds: bool = True, turn: int = 1) -> list:
    """What all ranks hold after `steps` of a ring that begins with `data`: in each, rank r sends chunk
    r + turn·(sent − step) to rank r + way, and receives chunk r + turn·(received − step)."""
    data, size = [vector.copy() for vector in data], len(data)
    bounds = chunk_bounds(len(data[0]), size)
    for step in range(size - 1 if steps is None else steps):
        parts = [data[rank][slice(*bounds[(rank + turn * (sent - step)) % size])].copy() for rank in range(size)]
        for rank in range(size):
            own = data[rank][slice(*bounds[(rank + turn * (received - step)) % size])]
            own[:] = parts[(rank - way) % size] + (own if adds else 0)
    return data
