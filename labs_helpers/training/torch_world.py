"""The ranks of torch.distributed, with the few methods of an MPI communicator that a training uses.

They carry settings, checkpoints and reports. Gradients and activations travel over a `Communication`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from labs_helpers.training.checkpoint_file import Array


class TorchWorld:
    """All ranks of the initialized torch.distributed, for `train`. device: PyTorch's name of this rank's device."""

    def __init__(self) -> None:
        nccl = dist.get_backend() == "nccl"
        self.device = f"cuda:{torch.cuda.current_device()}" if nccl else "cpu"
        self._group = dist.new_group(backend="gloo") if nccl else dist.group.WORLD  # these objects are on the CPU

    def Get_rank(self) -> int:
        return dist.get_rank()

    def Get_size(self) -> int:
        return dist.get_world_size()

    def bcast(self, value: Any) -> Any:
        """Return rank 0's value on every rank."""
        values = [value]
        dist.broadcast_object_list(values, 0, self._group)
        return values[0]

    def gather(self, value: Any) -> list[Any] | None:
        """Return the values of all ranks on rank 0, and None on the others."""
        values = [None] * self.Get_size() if self.Get_rank() == 0 else None
        dist.gather_object(value, values, 0, self._group)
        return values

    def Bcast(self, array: Array) -> None:
        """Copy rank 0's array into every rank's, which is contiguous."""
        dist.broadcast(torch.from_numpy(array), 0, self._group)
