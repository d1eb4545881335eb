"""Start ranks for a data-parallel notebook: one GPU per rank with NCCL, or two CPU ranks with gloo."""

from __future__ import annotations


def how_many() -> int:
    """Return this machine's number of GPUs, but at least two."""
    import torch

    return max(2, torch.cuda.device_count())


def join():
    """Join torch.distributed; return (group, device): the group of all ranks, and this rank's device.

    Every rank of the cluster calls this. A second call returns the same pair.
    """
    import warnings

    import torch
    import torch.distributed as dist
    from mpi4py import MPI

    from labs_helpers.communication.torch_distributed import start

    comm = MPI.COMM_WORLD
    on_gpus = torch.cuda.device_count() >= comm.size
    device = torch.device("cuda", comm.rank) if on_gpus else torch.device("cpu")
    if on_gpus:
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)  # the ranks share the cores, so each uses one thread
    warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)  # about names that PyTorch 2.13 replaces
    if not dist.is_initialized():
        start(comm, "nccl" if on_gpus else "gloo")
    return dist.group.WORLD, device
