"""Mistakes in the accumulation of a gradient, tile by tile, and their results."""

import torch

from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass
from labs_helpers.course.verdict import Candidates

LOG2E = 1.4426950408889634


def step_causes(e: BackwardPass, name: str) -> Candidates:
    """Yield (sentence, the wrong value of `name`)."""
    scale = 1.0 if name == "dv" else e.scale
    letter = NAMES[name]
    twice = (
        f"{letter} is added twice: tl.dot(a, b, acc) already adds acc, so write acc = tl.dot(…), not acc += tl.dot(…)"
    )
    yield twice, scale * summed(e, name, lambda acc, part: 2 * acc + part)
    often = f"{letter} is multiplied by the scale in each step of the loop; multiply once, at the end"
    yield often, summed(e, name, lambda acc, part: e.scale * (acc + part))
    yield often, summed(e, name, lambda acc, part: e.scale * acc + part)
    yield (
        f"the accumulator of {letter} is rounded to 16 bits in each step; keep it in float32",
        scale * summed(e, name, lambda acc, part: (acc + part).half().double()),
    )
    own, other = ("BLOCK_N", "BLOCK_M") if name == "dq" else ("BLOCK_M", "BLOCK_N")
    size, wrong = getattr(e, own), getattr(e, other)
    for width in {wrong, 16, 32, 64, 128} - {size}:
        what = f"{other} or the number {width}" if width == wrong else f"the number {width}"
        yield f"{what} is used instead of {own}", counted(e, name, size, width)
        yield f"{what} is used instead of {own}", counted(e, name, width, size)
    yield (
        f"`start` counts tiles instead of rows: the step of {own} is missing",
        counted(e, name, 1, size, size),
    )
    yield (
        "every step loads the same tile; add `start` to the rows",
        counted(e, name, size, size, 0),
    )
    yield f"the result of tl.dot is not used, so {letter} stays 0", torch.zeros_like(getattr(e, name))


def counted(e: BackwardPass, name: str, step: int, width: int, shorter: int = 1) -> torch.Tensor:
    """Return the gradient of a loop with the given step that takes `width` rows and ends at 1/`shorter` of its range.

    With `shorter` = 0 the loop has its full range but takes its first tile each time.
    """
    length = e.Lk if name == "dq" else e.Lq
    visited = e.walked(e.corner) if name == "dq" else e.walked(e.corner).mT
    first, end = visited.int().argmax(1), visited.shape[1] - visited.flip(1).int().argmax(1)
    times = torch.zeros(visited.shape, dtype=torch.float64)
    for row in range(len(times)):
        if visited[row].any():
            for start in range(int(first[row]), -(-int(end[row]) // (shorter or 1)), step):
                start = start if shorter else int(first[row])
                times[row, start : min(start + width, length)] += 1
    if name == "dq":
        return (e.ds * times) @ e.k * e.scale
    left, right, scale = (e.p, e.do, 1.0) if name == "dv" else (e.ds, e.q, e.scale)
    return scale * (left.mT * times) @ right


def summed(e: BackwardPass, name: str, add) -> torch.Tensor:
    """Return the gradient without its scale, accumulated by add(acc, part)."""
    left, right = {"dq": (e.ds, e.k), "dk": (e.ds.mT, e.q), "dv": (e.p.mT, e.do)}[name]
    visited, width = e.walked(e.corner), e.BLOCK_N if name == "dq" else e.BLOCK_M
    visited = visited if name == "dq" else visited.mT
    acc = torch.zeros_like(getattr(e, name))
    for start in range(0, left.shape[-1], width):
        tile = slice(start, start + width)
        rows = visited[:, start : start + 1]
        acc = add(acc, left[..., tile] @ right[..., tile, :]).where(rows, acc)
    return acc
