"""Kind `all_reduce`: how long the mean of so many bytes takes, on 2, 4 … and all ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
import torch.distributed as dist

from labs_helpers.data_parallel.study.task import Record, Task, first_ranks, gathered, group_sizes
from labs_helpers.data_parallel.study.turns import timed
from labs_helpers.measure.timing import Timing

SMALLEST, LARGEST = 4**5, {"cuda": 4**15, "cpu": 4**12}  # bytes: 1 KB to 1 GB, on CPUs to 16 MB
SPENT_S = 0.4  # of each size, but at least 5 calls and at most 20


class _Call:
    """One all-reduce, as a step that `timed` takes."""

    def __init__(self, x: torch.Tensor, group: object) -> None:
        self.x, self.group, self.loss = x, group, x

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "call", lambda: dist.all_reduce(self.x, group=self.group)


def measure(task: Task) -> list[Record]:
    """A record per number of ranks and size in bytes. Every rank calls it; the same list on all."""
    records: list[Record] = []
    for ranks in (n for n in group_sizes() if n > 1):
        with first_ranks(ranks) as group:
            found = []
            nbytes = SMALLEST
            while group is not None and nbytes <= LARGEST[task.device.type]:
                call = _Call(torch.zeros(nbytes // task.dtype.itemsize, dtype=task.dtype, device=task.device), group)
                here = task(group)
                first = max(gathered(max(timed(here, call)["step"] for _ in range(3)), group))
                runs = int(min(20, max(5, SPENT_S / first)))
                taken = [1e3 * timed(here, call)["step"] for _ in range(runs)]
                timing = max(gathered(Timing.of(taken), group), key=lambda timing: timing.median_ms)
                times = {"call_ms": timing.median_ms, "call_p20_ms": timing.p20_ms, "call_p80_ms": timing.p80_ms}
                about = here.about | {"kind": "all_reduce", "group": "dp", "ranks": ranks, "bytes": nbytes}
                found.append(about | times | {"runs": runs})
                nbytes *= 4
        records += gathered(found)[0]
    return records
