"""Ranks for a notebook on data parallelism: a GPU each with NCCL, if there are two or more, or two CPUs with gloo."""

from __future__ import annotations


def how_many() -> int:
    """As many as this machine has GPUs; two where it has fewer."""
    import torch

    return max(2, torch.cuda.device_count())


def join():
    """Called on every rank of the cluster: (group, device), torch.distributed's group of all ranks, and this one's
    device. A second call returns the same."""
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
        torch.set_num_threads(1)  # ranks are what shares the cores
    warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)  # of names that PyTorch 2.13 replaces
    if not dist.is_initialized():
        start(comm, "nccl" if on_gpus else "gloo")
    return dist.group.WORLD, device
