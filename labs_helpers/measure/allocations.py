"""Record every tensor that is created and freed while training steps run, and the line that created it."""

from __future__ import annotations

import itertools
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from labs_helpers.launch.stuck import is_installed
from labs_helpers.measure.peak_memory import Alive

Events = list[tuple[Any, ...]]


def allocations(step: Callable[[], object], steps: int) -> Events:
    """Return the events of `steps` calls of step(), in order of time: ("alloc", number of the step, id, bytes, place)
    and ("free", number of the step, id).

    place: the innermost line outside installed packages, 'leak.py:16'; in a backward pass, the one that called it. It
    sees tensors on CPUs and GPUs alike, and nothing that a library allocates by itself.
    """
    with _Allocations() as recording:
        for recording.step in range(steps):
            step()
        return list(recording.events)  # tensors freed later still add events


class _Allocations(Alive):
    def __init__(self) -> None:
        super().__init__(known=())
        self.step, self.numbers, self.events = 0, itertools.count(), Events()

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for given in tree_leaves((args, kwargs)):  # what no operator in here created existed before
            if isinstance(given, torch.Tensor):
                self.seen.add(given.untyped_storage())
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage() not in self.seen:
                storage, number = tensor.untyped_storage(), next(self.numbers)
                self.seen.add(storage)
                self.events.append(("alloc", self.step, number, storage.nbytes(), _place()))
                weakref.finalize(storage, self._free, number)
        return result

    def _free(self, number: int) -> None:
        self.events.append(("free", self.step, number))


def _place() -> str:
    frame: Any = sys._getframe(1)
    while frame is not None and (is_installed(frame.f_code.co_filename) or frame.f_code.co_filename == __file__):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame else "outside your code"
