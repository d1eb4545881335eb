"""Join the ranks of a job: one GPU per rank with NCCL, or one CPU thread per rank with gloo."""

from __future__ import annotations

from typing import Any

from labs_helpers.communication.torch_distributed import TorchCommunication, start


def join(comm: Any) -> TorchCommunication:
    """Start torch.distributed on the ranks of an MPI communicator; return the group of all ranks."""
    import torch
    import torch.distributed as dist

    on_gpus = torch.cuda.device_count() >= comm.size
    if on_gpus:
        torch.cuda.set_device(comm.rank)
    else:
        torch.set_num_threads(1)  # the ranks share the cores
    start(comm, "nccl" if on_gpus else "gloo")
    return TorchCommunication(dist.group.WORLD)
