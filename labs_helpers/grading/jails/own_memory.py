"""Keep kernels in Triton's interpreter to the memory of their own tensors.

There a pointer is an address of the process, and a stray one could change the program around it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch


class Astray(RuntimeError):
    """A kernel loads or stores outside all tensors of its launch."""


def keep_to_own_memory() -> None:
    """Guard kernels from now on, in this process: a stray access raises Astray inside the kernel. This imports
    Triton's interpreter."""
    from triton.runtime import interpreter

    if isinstance(interpreter._interpreter, _Guarded):
        return
    guarded = _Guarded(interpreter._interpreter)
    launch = interpreter.GridExecutor.__call__

    def watched(self: Any, *args: Any, **keywords: Any) -> Any:
        before, guarded.ranges = guarded.ranges, _ranges([*args, *keywords.values()])
        try:
            return launch(self, *args, **keywords)
        finally:
            guarded.ranges = before

    interpreter._interpreter = guarded
    interpreter.GridExecutor.__call__ = watched


def _ranges(arguments: list[Any]) -> list[tuple[int, int]]:
    """Return the first address of each tensor's storage, and the address after its last."""
    found = []
    for argument in arguments:
        tensor = getattr(argument, "base", argument)  # of a descriptor
        if isinstance(tensor, torch.Tensor):
            storage = tensor.untyped_storage()
            found.append((storage.data_ptr(), storage.data_ptr() + storage.nbytes()))
        elif isinstance(argument, tuple | list):
            found += _ranges(list(argument))
    return found


class _Guarded:
    """The interpreter's own functions, which check the addresses before they use them."""

    def __init__(self, plain: Any) -> None:
        self.plain, self.ranges = plain, list[tuple[int, int]]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.plain, name)

    def load(self, ptrs: Any, mask: Any, other: Any, dtype: Any) -> Any:
        self._look(ptrs, mask, np.dtype(dtype).itemsize)
        return self.plain.load(ptrs, mask, other, dtype)

    def store(self, ptrs: Any, value: Any, mask: Any) -> Any:
        self._look(ptrs, mask, value.dtype.itemsize)
        return self.plain.store(ptrs, value, mask)

    def atomic_cas(self, ptr: Any, cmp: Any, val: Any, sem: Any) -> Any:
        self._look(ptr, np.ones_like(ptr, bool), val.dtype.itemsize)
        return self.plain.atomic_cas(ptr, cmp, val, sem)

    def atomic_rmw(self, op: Any, ptr: Any, val: Any, mask: Any, sem: Any) -> Any:
        self._look(ptr, mask, val.dtype.itemsize)
        return self.plain.atomic_rmw(op, ptr, val, mask, sem)

    def _look(self, ptrs: Any, mask: Any, size: int) -> None:
        addresses = np.asarray(ptrs)[np.broadcast_to(np.asarray(mask, bool), np.shape(ptrs))].astype(np.int64)
        inside = np.zeros(addresses.shape, bool)
        for first, end in self.ranges:
            inside |= (addresses >= first) & (addresses <= end - size)
        if not inside.all():
            raise Astray("the kernel reaches memory that is outside of its tensors")
