"""Kind `all_reduce`: time the mean of tensors of several sizes, on 2, 4, … and all ranks."""

from __future__ import annotations

from labs_helpers.communication.all_reduce_times import time_all_reduces
from labs_helpers.data_parallel.study.task import Record, Task, first_ranks, gathered, group_sizes

SIZES = {"cuda": tuple(4**i for i in range(5, 16)), "cpu": tuple(4**i for i in range(5, 13))}  # bytes, from 1 KB
SPENT_S = 0.4  # per size; at least 5 calls and at most 20


def measure(task: Task) -> list[Record]:
    """Return one record per number of ranks and size in bytes. Every rank calls this, and gets the same list."""
    records: list[Record] = []
    for ranks in (n for n in group_sizes() if n > 1):
        with first_ranks(ranks) as group:
            found = []
            if group is not None:
                about = task(group).about | {"group": "dp"}
                calls = time_all_reduces(group, task.dtype, task.device, SIZES[task.device.type], seconds=SPENT_S)
                found = [about | call for call in calls]
        records += gathered(found)[0]
    return records
