"""Hidden inputs of exercise 4: timelines of random lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labs_helpers.clinic.lab11.timelines import Line, timeline
from labs_helpers.grading.hidden import hidden, kept


@hidden("11/4")
def find_leak(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for half in (1, 2, 3, 4, 5):
        steps = 2 * half
        events = timeline(steps, {f"line {i} of step.py": _line(draw, steps) for i in draw.permutation(40)[:8]})
        same = kept(events)
        found = function(events, steps)
        yield {place: np.asarray([float(found[place])]) for place in sorted(found)}
        yield same()


def _line(draw: np.random.Generator, steps: int) -> Line:
    """Draw a line that keeps what it allocates from some step on or always, or only its newest blocks."""
    blocks = draw.integers(1, 4, steps) * (draw.random(steps) < draw.choice([0.7, 1.0]))
    sizes = [draw.integers(1, 10_000, count).tolist() for count in blocks]
    few = draw.integers(0, 3, steps).cumsum() if draw.random() < 0.5 else draw.integers(0, 3, steps)
    kept_blocks = few.tolist() if draw.random() < 0.5 else [sum(map(len, sizes))] * steps
    return Line(sizes.__getitem__, kept_blocks.__getitem__)
