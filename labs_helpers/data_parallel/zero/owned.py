"""The optimizer's part of a bucket on one rank: the pieces in its shard, as separate parameters.

They share the shard's memory if dtype and device allow. Otherwise they are master weights: a float32 copy of the shard
of a bfloat16 model, so that small updates are not rounded away, and with offload in CPU memory.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from labs_helpers.data_parallel.zero.partition import Piece


class Owned:
    """The optimizer's pieces of one shard.

    shard: (n,), this rank's part of the bucket's parameters. exact: the same before rounding to the shard's dtype, or
    None. device: where the optimizer works. home: (n,), the tensor it updates, in exact's dtype.
    """

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
        """Start to copy a gradient, (n,) in the shard's dtype, to the optimizer's device; synchronize before use."""
        self.fetched = gradient
        if gradient is not None and gradient.device != self.home.device:
            self.fetched = self._staging(gradient).copy_(gradient, non_blocking=True)

    def take(self, used: Sequence[bool]) -> None:
        """Assign the fetched gradient to the pieces.

        A parameter that is not `used` gets none; the optimizer then skips it, including its moments and weight decay.
        """
        gradient = None if self.fetched is None else self.fetched.to(self.home.dtype)
        for piece, tensor in zip(self.pieces, self.tensors, strict=True):
            tensor.grad = gradient[piece.in_shard] if gradient is not None and used[piece.number] else None

    def give(self) -> None:
        """Write the optimizer's result into the shard, and release the gradient."""
        self.fetched = None
        for tensor in self.tensors:
            tensor.grad = None
        if not self.separate:
            return
        home = self.home
        if home.device != self.shard.device and home.dtype != self.shard.dtype:
            home = self._staging(self.shard).copy_(home)  # round before the copy, which then moves half as many bytes
        self.shard.copy_(home, non_blocking=True)

    def _staging(self, like: Tensor) -> Tensor:
        if self.staging is None:
            self.staging = empty_beside(like.numel(), like.dtype, self.home.device, like.device)
        return self.staging


def empty_beside(numel: int, dtype: torch.dtype, device: torch.device, partner: torch.device) -> Tensor:
    """Return an empty tensor (numel,) on `device`, pinned if that is the CPU and its partner a GPU.

    Only pinned memory is copied to and from a GPU at full speed and without blocking the host.
    """
    return torch.empty(numel, dtype=dtype, device=device, pin_memory=device.type == "cpu" and partner.type == "cuda")
