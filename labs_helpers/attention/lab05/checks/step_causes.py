"""What a mistake in adding up gives, where a gradient grows tile by tile along a walk."""

import torch

from labs_helpers.attention.lab05.checks.backward_pass import NAMES, BackwardPass
from labs_helpers.course.verdict import Candidates

LOG2E = 1.4426950408889634


def step_causes(e: BackwardPass, name: str) -> Candidates:
    """Yields (sentence, the value of `name` that it leads to)."""
    scale = 1.0 if name == "dv" else e.scale
    letter = NAMES[name]
    twice = f"{letter} is added twice: tl.dot(a, b, acc) has acc in it, so acc = tl.dot(…), not acc += tl.dot(…)"
    yield twice, scale * summed(e, name, lambda acc, part: 2 * acc + part)
    often = f"{letter} is multiplied by the scale in each step of the loop; once, at the end"
    yield often, summed(e, name, lambda acc, part: e.scale * (acc + part))
    yield often, summed(e, name, lambda acc, part: e.scale * acc + part)
    yield (
        f"the accumulator of {letter} is rounded to 16 bits in each step; it stays in float32",
        scale * summed(e, name, lambda acc, part: (acc + part).half().double()),
    )
    yield f"the result of tl.dot is dropped: {letter} stays 0", torch.zeros_like(getattr(e, name))


def summed(e: BackwardPass, name: str, add) -> torch.Tensor:
    """The gradient without its scale, where add(acc, part) makes a step."""
    left, right = {"dq": (e.ds, e.k), "dk": (e.ds.mT, e.q), "dv": (e.p.mT, e.do)}[name]
    visited, width = e.walked(e.corner), e.BLOCK_N if name == "dq" else e.BLOCK_M
    visited = visited if name == "dq" else visited.mT
    acc = torch.zeros_like(getattr(e, name))
    for start in range(0, left.shape[-1], width):
        tile = slice(start, start + width)
        rows = visited[:, start : start + 1]
        acc = add(acc, left[..., tile] @ right[..., tile, :]).where(rows, acc)
    return acc
