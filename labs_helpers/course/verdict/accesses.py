"""Record which elements a kernel's loads and stores touch, block by block, to tell where a wrong answer went astray.

Works in the interpreter only. Only a wrong answer runs a second time for this; a right one costs nothing.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import torch

from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.meter import metered, student_line
from labs_helpers.course.pointers import parameter_of

ENOUGH = 2000  # accesses, of an answer that loads element by element


@dataclass(frozen=True)
class Access:
    """One load or store of a block of `tensor`, the kernel's parameter `name`. `offsets` (in elements from the
    tensor's first) and `mask` have the block's shape. number, line: of the student's code. grid_size: that of the
    launch."""

    kind: str
    name: str
    tensor: torch.Tensor
    number: int | None
    line: str
    program: tuple[int, int, int]
    grid_size: tuple[int, ...]
    offsets: np.ndarray
    mask: np.ndarray

    def grid(self) -> tuple[int, tuple[int, ...]] | None:
        """Return (offset of the first element, step along each axis) if the block is a regular grid, otherwise None."""
        origin = int(self.offsets.flat[0])
        steps, grid = [], np.array(origin)
        for axis, size in enumerate(self.offsets.shape):
            steps.append(int(self.offsets.take(1, axis).flat[0]) - origin if size > 1 else 0)
            along = [-1 if other == axis else 1 for other in range(self.offsets.ndim)]
            grid = grid + (steps[-1] * np.arange(size)).reshape(along)
        return (origin, tuple(steps)) if np.array_equal(grid, self.offsets) else None


def accesses_of(student, *args, **kwargs) -> list[Access]:
    """Return the accesses of `student(*args, **kwargs)` in order; if it raises, those of the programs before the
    error."""
    from triton.runtime.interpreter import InterpreterBuilder

    found: list[Access] = []
    touched: dict[tuple, set[str]] = {}  # by a line's loads or stores
    files = {plain(part).__code__.co_filename for part in reachable(student).values()}
    names = ("create_masked_load", "create_masked_store")

    with suppress(Exception), metered() as meter:

        def note(kind: str, pointers: np.ndarray, mask: np.ndarray, program) -> None:
            if len(found) == ENOUGH:
                return
            launch, (file, number, line) = meter.launches[-1], student_line(files)
            tensors = launch.tensors()
            mask = np.broadcast_to(mask, pointers.shape).astype(bool)
            here = touched.setdefault((kind, number), set())
            # A fully masked block may point into another tensor's memory, so it is attributed to a tensor of its line.
            first, among = (pointers[mask][0], tensors) if mask.any() else (pointers.flat[0], here or tensors)
            name = parameter_of(file, number, kind)  # '' if the source does not tell
            if name not in tensors:
                name = min(among, key=lambda name: _distance(tensors[name], int(first)))
            if mask.any():
                here.add(name)
            offsets = (pointers.astype(np.int64) - tensors[name].data_ptr()) // tensors[name].element_size()
            found.append(Access(kind, name, tensors[name], number, line, program, launch.grid, offsets, mask))

        metering = {name: getattr(InterpreterBuilder, name) for name in names}

        def load(self, pointers, mask, *rest, **named):
            note("load", pointers.data, mask.data, tuple(map(int, self.grid_idx)))
            return metering["create_masked_load"](self, pointers, mask, *rest, **named)

        def store(self, pointers, value, mask, *rest, **named):
            note("store", pointers.data, mask.data, tuple(map(int, self.grid_idx)))
            return metering["create_masked_store"](self, pointers, value, mask, *rest, **named)

        InterpreterBuilder.create_masked_load, InterpreterBuilder.create_masked_store = load, store
        student(*args, **kwargs)  # metered() restores Triton's own functions
    return found


def _distance(tensor, address: int) -> int:
    """Return how many bytes an address is away from a tensor's memory; 0 if it is inside."""
    memory = tensor.untyped_storage()
    begin = memory.data_ptr()
    return max(begin - address, address - (begin + memory.nbytes() - 1), 0)
