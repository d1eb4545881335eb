"""The collectives of ZeRO: on flat memory, in place where that is possible, and beside the computation."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor

from labs_helpers.communication.interface import Done, Request
from labs_helpers.communication.torch_distributed import TorchCommunication, _all_gather, _reduce_scatter, _Started


class FlatCommunication(TorchCommunication):
    """Over a torch.distributed process group, or that of a `TorchCommunication`; None: of all ranks. gloo on CPUs, NCCL
    on GPUs.

    NCCL works on a stream of its own, in the order of the calls, beginning after what the current stream has in its
    queue; `wait()` makes the current stream wait for it, and not the host. So one group gives all the overlap there is
    without further streams, and memory that is freed after `wait()` is not used again too early.
    """

    def __init__(self, group: Any = None) -> None:
        group = group.group if isinstance(group, TorchCommunication) else group
        super().__init__(dist.group.WORLD if group is None else group)

    def start_mean_shard(self, mine: Tensor, x: Tensor) -> Request:
        """mine, (n,), becomes this rank's part of the mean of all ranks' x, (size · n,). It may be that part of x
        itself: then nothing is copied. What is left in x is of no use."""
        if self.size == 1:
            if mine.data_ptr() != x.data_ptr():
                mine.copy_(x)
            return Done()
        self._count("reduce_scatter", x.nbytes)
        operation = dist.ReduceOp.AVG  # NCCL divides as it reads
        if not self.nccl:
            x.mul_(1 / self.size)  # before the sum, as all means here, so that float16 cannot overflow
            operation = dist.ReduceOp.SUM
        return _Started(_reduce_scatter(mine, x, op=operation, group=self.group, async_op=True))

    def start_gather(self, whole: Tensor, mine: Tensor) -> Request:
        """whole, (size · n,), becomes all ranks' mine, (n,), in their order. mine may be this rank's part of whole
        itself: then nothing is copied."""
        if self.size == 1:
            if mine.data_ptr() != whole.data_ptr():
                whole.copy_(mine)
            return Done()
        self._count("all_gather", whole.nbytes)
        return _Started(_all_gather(whole, mine, group=self.group, async_op=True))

    def gather_objects(self, mine: Any) -> list[Any]:
        """Every rank's object, in the ranks' order."""
        everybody: list[Any] = [None] * self.size
        dist.all_gather_object(everybody, mine, group=self.group)
        return everybody
