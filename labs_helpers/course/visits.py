"""Count which program loads which row of a tensor, on any machine: in this interpreter or in that of another
process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

from labs_helpers.compile.interpreter_process import interpreted
from labs_helpers.course.meter import metered


def visits(function, x, y, *rest, **keywords) -> np.ndarray:
    """Return how often program (i, 0, 0) loads each row of `y` during `function(x, y, …)`: int (programs, rows).

    y: (…, rows, columns); rows of its first matrix are counted. On a GPU, the interpreter of another process makes the
    call, on copies. Raises the call's exceptions.
    """
    return interpreted(_visits, function, x, y, *rest, **keywords)


@contextmanager
def row_loads(y: torch.Tensor) -> Iterator[dict[int, np.ndarray]]:
    """Yield a dict that interpreted kernels inside the block fill: i → how often program (i, 0, 0) loads each row of
    y's first matrix, int (rows,)."""
    from triton.runtime.interpreter import InterpreterBuilder

    column = y[(0,) * (y.ndim - 2)][:, 0]
    addresses = column.data_ptr() + np.arange(len(column)) * column.stride(0) * column.element_size()
    found: dict[int, np.ndarray] = {}
    load = InterpreterBuilder.create_masked_load

    def counted(self, ptrs, mask, *arguments, **named):
        i, *others = self.grid_idx
        loads = found.setdefault(i, np.zeros(len(addresses), int))
        if not any(others):
            touched = ptrs.data[np.broadcast_to(mask.data, ptrs.data.shape).astype(bool)].astype(np.int64)
            loads += (touched[:, None] == addresses).sum(0)
        return load(self, ptrs, mask, *arguments, **named)

    InterpreterBuilder.create_masked_load = counted
    try:
        yield found
    finally:
        InterpreterBuilder.create_masked_load = load


def _visits(function, x, y, *rest, **keywords) -> np.ndarray:
    with metered(), row_loads(y) as found:
        function(x, y, *rest, **keywords)
    return np.array([found[i] for i in sorted(found)])
