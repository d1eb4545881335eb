"""What the optimizer of one rank is given of a bucket: the pieces in this rank's shard, as parameters of their own.

They are the shard's own memory where dtype and device allow. Else they are the master weights: a float32 copy of the
shard beside a model in bfloat16, in which small updates are not rounded away, and, with offload, in the CPU's memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labs_helpers.data_parallel.zero.partition import Piece


class Owned:
    """shard: (n,), this rank's part of the bucket's parameters. exact: the same before it was rounded to the shard's
    dtype, or None. device: where the optimizer works. home: (n,), what it updates, in exact's dtype."""

    def __init__(self, pieces: Sequence[Piece], shard: Tensor, exact: Tensor | None, device: torch.device) -> None:
        self.pieces, self.shard = pieces, shard
        source = shard if exact is None else exact
        self.separate = exact is not None or device != shard.device
        if self.separate:
            self.home = empty_beside(source.numel(), source.dtype, device, source.device).copy_(source)
        else:
            self.home = shard
        self.tensors = [nn.Parameter(self.home[piece.in_shard]) for piece in pieces]
        self.fetched: Tensor | None = None
        self.staging: Tensor | None = None

    def fetch(self, gradient: Tensor | None) -> None:
        """Brings a gradient, (n,) in the shard's dtype, to the optimizer's device; there after a synchronisation."""
        self.fetched = gradient
        if gradient is not None and gradient.device != self.home.device:
            self.fetched = self._staging(gradient).copy_(gradient, non_blocking=True)

    def take(self, used: Sequence[bool]) -> None:
        """Gives the pieces the gradient that was fetched. A parameter not `used` has none: the optimizer passes over
        it, and neither its moments nor its weight decay move."""
        gradient = None if self.fetched is None else self.fetched.to(self.home.dtype)
        for piece, tensor in zip(self.pieces, self.tensors, strict=True):
            tensor.grad = gradient[piece.in_shard] if gradient is not None and used[piece.number] else None

    def give(self) -> None:
        """Writes what the optimizer has made into the shard, and lets go of the gradient."""
        self.fetched = None
        for tensor in self.tensors:
            tensor.grad = None
        if not self.separate:
            return
        home = self.home
        if home.device != self.shard.device and home.dtype != self.shard.dtype:
            home = self._staging(self.shard).copy_(home)  # rounded here, so that half the bytes travel
        self.shard.copy_(home, non_blocking=True)

    def _staging(self, like: Tensor) -> Tensor:
        if self.staging is None:
            self.staging = empty_beside(like.numel(), like.dtype, self.home.device, like.device)
        return self.staging


def empty_beside(numel: int, dtype: torch.dtype, device: torch.device, partner: torch.device) -> Tensor:
    """(numel,) on `device`. Pinned where it is the CPU's and its partner a GPU: only such memory is copied to and from
    the GPU at full speed and while the host goes on."""
    return torch.empty(numel, dtype=dtype, device=device, pin_memory=device.type == "cpu" and partner.type == "cuda")
