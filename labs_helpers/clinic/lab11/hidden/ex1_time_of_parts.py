"""Hidden inputs of exercise 1: steps whose parts overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labs_helpers.grading.hidden import hidden, kept

COMPUTING = ("forward", "backward", "optimizer")


@hidden("11/1")
def time_of_parts(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for missing in range(5):
        spans, length = _spans(draw), float(draw.uniform(20, 30))
        for part in draw.permutation(list(spans))[:missing].tolist():
            del spans[part]
        same = kept(spans)
        ms = function(spans, length)
        yield np.asarray([ms[part] for part in (*COMPUTING, "data", "communication", "idle")], np.float64)
        yield same()


def _spans(draw: np.random.Generator) -> dict[str, list[tuple[float, float]]]:
    """Draw spans of all parts. Some end after the step; only the computing parts do not overlap each other."""
    ends = np.sort(draw.uniform(0, 33, 9)).tolist()
    spans: dict[str, list[tuple[float, float]]] = {part: [] for part in COMPUTING}
    for start, stop in zip(ends, ends[1:], strict=False):
        spans[str(draw.choice(COMPUTING))].insert(0, (start, float(draw.uniform(start, stop))))
    for part in ("data", "communication"):
        starts = draw.uniform(0, 33, 5).tolist()
        spans[part] = [(start, start + float(draw.uniform(0, 7))) for start in starts]
    return spans
