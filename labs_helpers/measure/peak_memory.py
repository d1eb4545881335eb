"""Measure how many bytes of tensors are alive at the same time while a function runs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Value = TypeVar("Value")


def peak_memory(function: Callable[..., Value], *tensors: torch.Tensor) -> tuple[Value, int]:
    """Return (value, bytes): the result of `function(*tensors)`, and the most bytes of tensors created inside that were
    alive at the same time, the result included.

    On a GPU this is the allocator's peak, in steps of 512 bytes. On a CPU each storage counts from its creation until
    it is freed.
    """
    if tensors[0].is_cuda:
        function(*tensors)  # compiles, and lets cuBLAS allocate its workspace, which it keeps
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        value = function(*tensors)
        return value, torch.cuda.max_memory_allocated() - before
    with Alive(tensors) as alive:
        value = function(*tensors)
    return value, alive.peak


class Alive(TorchDispatchMode):
    """Track the storages of tensors created inside the block: `peak` is the most bytes alive."""

    def __init__(self, known: Iterable[torch.Tensor]) -> None:
        super().__init__()
        self.alive = self.peak = 0
        self.seen = weakref.WeakSet(tensor.untyped_storage() for tensor in known)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch._dynamo out, because its import takes more than a second and nothing here is compiled."""
        return False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage() not in self.seen:
                storage = tensor.untyped_storage()
                self.seen.add(storage)
                self.change(storage.nbytes())
                weakref.finalize(storage, self.change, -storage.nbytes())
        return result

    def change(self, nbytes: int) -> None:
        """Record that a storage of this size was created or, if the size is negative, freed."""
        self.alive += nbytes
        self.peak = max(self.peak, self.alive)
