"""Time an all-reduce by its size, on the ranks of a process group."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from labs_helpers.measure.race import TorchRanks, clock, record_of, slowest, timings

SIZES = tuple(4**i for i in range(5, 15))  # bytes: 1 KB to 256 MB
WARM_UP = 3  # calls


def time_all_reduces(
    group: Any,
    dtype: torch.dtype,
    device: torch.device,
    sizes: Iterable[int] = SIZES,
    runs: int = 20,
    seconds: float = float("inf"),
    together: TorchRanks | None = None,
) -> list[dict[str, Any]]:
    """Return one record per size in bytes, the same on every rank of the group; every rank has to call it. [] for a
    group of one.

    runs: timed calls per size; fewer, but at least 5, if they would take longer than `seconds`. together: the ranks
    that start together, of which the slowest counts; by default the group's, or those of several groups.
    """
    ranks, found = together or TorchRanks(group), []
    for nbytes in sizes if dist.get_world_size(group) > 1 else ():
        x = torch.zeros(nbytes // dtype.itemsize, dtype=dtype, device=device)
        call = partial(clock, partial(dist.all_reduce, x, group=group), device, ranks)
        first = max(ranks.gather(max(call()[1] for _ in range(WARM_UP))))
        enough = int(min(runs, max(5, seconds / first)))
        mine = timings([call()[1] for _ in range(enough)])
        about = {"kind": "all_reduce", "ranks": dist.get_world_size(group), "bytes": nbytes}
        found.append(about | record_of(slowest(ranks.gather(mine)), "call"))
    return found
