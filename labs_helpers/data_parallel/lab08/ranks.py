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

    from labs_helpers.communication.torch_distributed import join

    warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)  # about names that PyTorch 2.13 replaces
    ranks = join()
    return ranks.group, ranks.device
