"""Kind `timeline`: record when a rank computes and when it communicates, in one step of each wrapper."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from labs_helpers.communication.watched import WatchedCommunication
from labs_helpers.data_parallel.study.replicas import WRAPPERS, replica
from labs_helpers.data_parallel.study.task import Record, Task
from labs_helpers.data_parallel.study.turns import WARM_UP, take
from labs_helpers.measure import trace
from labs_helpers.measure.race import TorchRanks
from labs_helpers.measure.step_timeline import by_clock, by_trace


def measure(task: Task) -> list[Record]:
    """Return one record per wrapper and rank. Every rank calls this, and gets the same list.

    On CPUs, the clock times the phases, and each collective from its start to its arrival. On GPUs, the intervals are
    kernels from torch.profiler. Times are in ms after the start of the step, which all ranks start together.
    """
    records = []
    ranks = TorchRanks(task.group)
    for wrapper in WRAPPERS:
        group = WatchedCommunication(task.process_group)
        step = replica(task, wrapper, group=group)
        if isinstance(step.wrapped, DistributedDataParallel):
            # DDP reads the hook's annotations, and accepts only its own types or none.
            step.wrapped.register_comm_hook(group, lambda group, bucket: _watched_mean(group, bucket))
        for _ in range(WARM_UP):
            take(step)
        on_gpu = task.device.type == "cuda"
        if on_gpu:
            ranks.barrier()
            intervals = by_trace(trace.record(partial(take, step)).events)
        else:
            intervals = by_clock(step.phases, group.taken, ranks)
        step.remove()
        end = max(interval[3] for interval in intervals)
        mine = {"rank": dist.get_rank(task.group), "step_ms": end, "intervals": intervals}
        about = task.about | {"kind": "timeline", "wrapper": wrapper}
        about["source"] = "profiler" if on_gpu else "marks"
        records += [about | of_rank for of_rank in ranks.gather(mine)]
    return records


def _watched_mean(group: WatchedCommunication, bucket: Any) -> Any:
    """Average a bucket with DistributedDataParallel's own all-reduce, as a hook."""
    x = bucket.buffer().div_(group.size)
    future = dist.all_reduce(x, group=group.group, async_op=True).get_future()
    return group.watch(future, x.nbytes).then(lambda future: future.value()[0])
