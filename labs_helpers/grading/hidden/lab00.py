"""Hidden inputs of lab 00."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from labs_helpers.grading.hidden import hidden, normal


@hidden("00/0")
def programs_needed(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for block in (16, 128, 1024):
        for n in draw.integers(1, 100 * block, 4):
            yield function(int(n), block)


@hidden("00/1")
def vector_add(function: Callable[..., Any], draw: np.random.Generator) -> Iterator[Any]:
    for n in draw.integers(2, 3000, 2):
        yield function(normal(draw, int(n)), normal(draw, int(n)))
