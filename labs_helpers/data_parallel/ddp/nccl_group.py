"""Make a process group for messages that overlap with computation on the GPU."""

from __future__ import annotations

from typing import Any

import torch.distributed as dist


def new_overlapping_group(ranks: list[int] | None = None, max_ctas: int | None = None) -> Any:
    """Return a process group of `ranks` (default: all) for a wrapper's `group`. Every rank of the world calls this.

    With NCCL, the group's kernels run in a high-priority stream: they get the next free multiprocessors, and do not
    wait behind the blocks of a queued matrix product. max_ctas: the largest number of multiprocessors that they occupy.
    Fewer leave more of the GPU to backward but move fewer bytes per second, so measure both. gloo ignores max_ctas.
    """
    if dist.get_backend() != "nccl":
        return dist.new_group(ranks)
    NCCL: Any = dist.ProcessGroupNCCL
    options = NCCL.Options(is_high_priority_stream=True)
    if max_ctas is not None:
        options.config.max_ctas = max_ctas
    return dist.new_group(ranks, pg_options=options)
