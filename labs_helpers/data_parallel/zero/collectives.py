"""Collectives of ZeRO on flat memory, in place if possible, and overlapping with compute."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor

from labs_helpers.communication.interface import Done, Request
from labs_helpers.communication.torch_distributed import TorchCommunication, _all_gather, _reduce_scatter, _Started


class FlatCommunication(TorchCommunication):
    """Collectives over a torch.distributed process group or that of a `TorchCommunication`; None: over all ranks.

    Use gloo on CPUs and NCCL on GPUs. NCCL runs on its own stream, in the order of the calls, after the work already
    queued on the current stream. `wait()` makes the current stream wait, but not the host. One group is therefore
    enough for full overlap, and memory freed after `wait()` is not reused too early.
    """

    def __init__(self, group: Any = None) -> None:
        group = group.group if isinstance(group, TorchCommunication) else group
        super().__init__(dist.group.WORLD if group is None else group)

    def start_mean_shard(self, mine: Tensor, x: Tensor) -> Request:
        """Start to reduce-scatter the mean of all ranks' x, (size · n,), into mine, (n,).

        If mine is this rank's part of x, nothing is copied. The contents of x are undefined afterwards.
        """
        if self.size == 1:
            if mine.data_ptr() != x.data_ptr():
                mine.copy_(x)
            return Done()
        self._count("reduce_scatter", x.nbytes)
        operation = dist.ReduceOp.AVG  # NCCL divides while it reads
        if not self.nccl:
            x.mul_(1 / self.size)  # before the sum, like all means here, so that float16 cannot overflow
            operation = dist.ReduceOp.SUM
        return _Started(_reduce_scatter(mine, x, op=operation, group=self.group, async_op=True))

    def start_gather(self, whole: Tensor, mine: Tensor) -> Request:
        """Start to gather all ranks' mine, (n,), in rank order into whole, (size · n,).

        If mine is this rank's part of whole, nothing is copied.
        """
        if self.size == 1:
            if mine.data_ptr() != whole.data_ptr():
                whole.copy_(mine)
            return Done()
        self._count("all_gather", whole.nbytes)
        return _Started(_all_gather(whole, mine, group=self.group, async_op=True))

    def gather_objects(self, mine: Any) -> list[Any]:
        """Return the objects of all ranks, in rank order."""
        everybody: list[Any] = [None] * self.size
        dist.all_gather_object(everybody, mine, group=self.group)
        return everybody
