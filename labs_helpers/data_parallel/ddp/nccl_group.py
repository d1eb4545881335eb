"""A process group for messages that travel while the GPU computes."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


def new_overlapping_group(ranks: list[int] | None = None, max_ctas: int | None = None) -> Any:
    """A process group of `ranks` (default: all) for a wrapper's `group`. Called by every rank of the world.

    On NCCL its kernels have a stream of high priority: they get the next multiprocessors that are free, where otherwise
    they wait behind the blocks of a matrix product that is queued already. max_ctas: the most multiprocessors that they
    occupy. Fewer take less from backward, whose matrix products are cut for all of them, and move fewer bytes per
    second: to be measured. On gloo both mean nothing.
    """
    if dist.get_backend() != "nccl":
        return dist.new_group(ranks)
    NCCL: Any = dist.ProcessGroupNCCL
    options = NCCL.Options(is_high_priority_stream=True)
    if max_ctas is not None:
        options.config.max_ctas = max_ctas
    return dist.new_group(ranks, pg_options=options)
