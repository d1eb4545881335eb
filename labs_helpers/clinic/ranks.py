"""Join the ranks of a job: one GPU per rank with NCCL, or one CPU thread per rank with gloo."""

from __future__ import annotations

from typing import Any

from labs_helpers.communication.torch_distributed import TorchCommunication, start
from labs_helpers.measure.machine import has_gpu


def on_gpus(ranks: int) -> bool:
    """Return whether so many ranks each have a GPU on this machine; otherwise all of them run on its CPU."""
    import torch

    return has_gpu() and torch.cuda.device_count() >= ranks


def join(comm: Any) -> TorchCommunication:
    """Start torch.distributed on the ranks of an MPI communicator; return the group of all ranks."""
    import torch
    import torch.distributed as dist

    gpus = on_gpus(comm.size)
    if gpus:
        torch.cuda.set_device(comm.rank)
    else:
        torch.set_num_threads(1)  # the ranks share the cores
    start(comm, "nccl" if gpus else "gloo")
    if gpus:
        dist.barrier()  # NCCL connects the ranks at their first collective, which takes seconds
    return TorchCommunication(dist.group.WORLD)
