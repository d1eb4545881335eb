"""Hidden inputs of exercise 9: jobs whose paths hide each other's changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labs_helpers.clinic.lab11.timed_jobs import ChangeableJob
from labs_helpers.grading.hidden import hidden, kept

NAMES = ("buckets", "bf16", "more workers", "CUDA graphs", "fused AdamW")


@hidden("11/9")
def smallest_change(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for size in (1, 2, 3, 2, 5, 6):  # of a set that reaches the goal; no set reaches the last one
        changes = draw.permutation(NAMES).tolist()
        paths = [(_ms(draw, 90, 100), {name: _ms(draw, 1, 18) for name in changes[i::2]}) for i in (0, 1)]
        job = ChangeableJob(paths, (_ms(draw, 5, 20), {changes[0]: _ms(draw, 1, 5)}))
        goal = job.ms(changes[:size]) - (size > len(changes))
        given = draw.permutation(changes).tolist()
        same = kept(given)
        answer = function(job.measure_of(given), given, goal)
        yield None if answer is None else [len(set(answer)), np.asarray([job.ms(set(answer))], np.float64)]
        yield [same(), len(set(job.measured)) == len(job.measured)]


def _ms(draw: np.random.Generator, low: int, high: int) -> float:
    """Draw a number of ms of which sums are exact."""
    return float(draw.integers(64 * low, 64 * high)) / 64
