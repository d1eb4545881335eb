"""What an answer may read of the exercises before it, for where the course's references are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from labs_helpers.collectives.algorithms import ring
from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.compile.source import plain


def ring_reduce_scatter(comm: Any, data: np.ndarray[Any, Any], op: Callable[..., Any]) -> None:
    """Lab 06's exercise 3."""
    mine = slice(*chunk_bounds(len(data), comm.size)[comm.rank])
    reduced = np.empty_like(data[mine])
    ring.reduce_scatter(comm, data, reduced, op)
    data[mine] = reduced


def with_those_before(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function; its module now has what it lacks."""
    getattr(plain(function), "__globals__", {}).setdefault("ring_reduce_scatter", ring_reduce_scatter)
    return function
