"""Watch memory that an answer frees and reallocates; freed memory reads as NaN instead of crashing the process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


class Watched:
    """Watch the memory of some tensors; `alive(tensor)` returns whether it is allocated."""

    def __init__(self) -> None:
        self.sizes: dict[int, int] = {}
        self.kept: list[Tensor] = []

    def watch(self, whole: Tensor) -> None:
        self.kept.append(whole)  # so that its address is not reused
        self.sizes[whole.untyped_storage().data_ptr()] = whole.untyped_storage().nbytes()

    def alive(self, whole: Tensor) -> bool:
        return self.sizes[whole.untyped_storage().data_ptr()] > 0


@contextmanager
def watched_memory() -> Iterator[Watched]:
    """Make resize_ of a watched storage fill the memory with NaN instead of freeing it, and record the size."""
    kind, watched = torch.UntypedStorage, Watched()
    really = {name: getattr(kind, name) for name in ("resize_", "size", "nbytes")}

    def resize_(self, size):
        at = self.data_ptr()
        if at not in watched.sizes:
            return really["resize_"](self, size)
        if size not in (0, really["nbytes"](self)):
            raise RuntimeError(f"resize_({size}): whole has {really['nbytes'](self)} bytes")
        if size and watched.sizes[at]:
            return self  # the same size: nothing happens
        # New memory does not contain zeros. A float of any size is NaN if all bits are set.
        torch.empty(0, dtype=torch.uint8).set_(self, 0, (really["nbytes"](self),)).fill_(255)
        watched.sizes[at] = size
        return self

    def nbytes(self):
        return watched.sizes.get(self.data_ptr(), really["nbytes"](self))

    resize_.watched = watched.sizes  # type: ignore[attr-defined]
    kind.resize_, kind.size, kind.nbytes = resize_, nbytes, nbytes
    try:
        yield watched
    finally:
        for name, method in really.items():
            setattr(kind, name, method)
