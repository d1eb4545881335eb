"""Compute which elements a launch's programs cover under a given mistake, and check that they work in blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from labs_helpers.course.verdict import Run, Wrong

Range = Callable[..., range]  # maps a program's ids to the indices that it covers along one axis


def block_size(run: Run, name: str, default: int) -> int:
    """Return the block size `name` of the last launch, or `default` if its kernel lacks that parameter."""
    size = run.launches[-1].constexprs.get(name, default)
    return int(getattr(size, "value", size))


def covered(run: Run, *axes: tuple[int, Range]) -> np.ndarray:
    """Count how many programs of the last launch store to each element, given the indices that each program covers.

    axes: for each axis of the result, its size and a function from a program's ids to a range of indices. Indices
    outside the result are masked.
    """
    grid = run.launches[-1].grid
    writers = np.zeros([size for size, _ in axes], np.int64)
    for ids in itertools.product(*map(range, (*grid, 1, 1)[:3])):
        taken = [[i for i in which(*ids) if 0 <= i < size] for size, which in axes]
        if all(taken):
            writers[np.ix_(*taken)] += 1
    return writers


def expect_blocks(run: Run, moved: int) -> None:
    """Raise Wrong if the programs load and store single elements. moved: elements loaded plus stored."""
    if run.meter is not None and 4 * run.meter.accesses > moved:
        raise Wrong(
            run.case,
            f"{run.meter.accesses:,} loads and stores move {moved:,} elements, one at a time.",
            cause="a program handles a whole block: tl.arange gives its offsets, and one tl.load its values. One at a "
            "time, 31 of the 32 threads of a warp have nothing to do.",
        )
