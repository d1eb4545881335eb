"""Which elements the programs of a launch take, worked out for mistakes, and whether they take them in blocks."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from labs_helpers.course.verdict import Run, Wrong

Range = Callable[..., range]  # of a program's ids: the indices that it takes along one axis


def block_size(run: Run, name: str, default: int) -> int:
    """The block size `name` of the last launch; `default` where its kernel has no such parameter."""
    size = run.launches[-1].constexprs.get(name, default)
    return int(getattr(size, "value", size))


def covered(run: Run, *axes: tuple[int, Range]) -> np.ndarray:
    """How many programs of the last launch store to each element, where a program takes what the ranges say.

    axes: of the result, (its size, range of its indices for a program's ids). What lies outside is masked.
    """
    grid = run.launches[-1].grid
    writers = np.zeros([size for size, _ in axes], np.int64)
    for ids in itertools.product(*map(range, (*grid, 1, 1)[:3])):
        taken = [[i for i in which(*ids) if 0 <= i < size] for size, which in axes]
        if all(taken):
            writers[np.ix_(*taken)] += 1
    return writers


def expect_blocks(run: Run, moved: int) -> None:
    """Raises Wrong where the programs load and store single elements. moved: elements loaded plus stored."""
    if run.meter is not None and 4 * run.meter.accesses > moved:
        raise Wrong(
            run.case,
            f"{run.meter.accesses:,} loads and stores move {moved:,} elements: one at a time.",
            cause="a program takes a block at once: tl.arange gives its offsets, and one tl.load its values. One at a "
            "time, 31 of the 32 threads of a warp have nothing to do.",
        )
