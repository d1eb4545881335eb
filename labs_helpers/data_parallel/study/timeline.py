"""Kind `timeline`: record when a rank computes and when it communicates, in one step of each wrapper."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from labs_helpers.communication.interface import Request
from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.data_parallel.study.replicas import WRAPPERS, replica
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import Record, Task, gathered
from labs_helpers.data_parallel.study.turns import WARM_UP, take
from labs_helpers.measure.trace import Event

TAKEN = 5  # steps; the median one is kept
GAP_US = 300.0  # kernels closer than this are drawn as one, because a traced step launches late
Interval = list[Any]  # lane, name, start in ms, stop in ms, bytes or None


class Watched(TorchCommunication):
    """A Communication that records when each mean starts and arrives. notes: (start, stop, bytes), from gloo."""

    def __init__(self, group: Any) -> None:
        super().__init__(group)
        self.notes: list[tuple[float, float, int]] = []
        self.arriving: list[Any] = []

    def _start_mean(self, tensors: tuple[Tensor, ...]) -> Request:
        request = super()._start_mean(tensors)
        self.watch(request.work.get_future(), sum(x.nbytes for x in tensors))  # type: ignore[attr-defined]
        return request

    def watch(self, future: Any, nbytes: int) -> Any:
        start = perf_counter()

        def arrived(future: Any) -> Any:
            self.notes.append((start, perf_counter(), nbytes))
            return future.value()

        self.arriving.append(future.then(arrived))
        return self.arriving[-1]

    def taken(self) -> list[tuple[float, float, int]]:
        """Return the notes so far, and clear them."""
        for future in self.arriving:
            future.wait()
        found, self.notes, self.arriving = sorted(self.notes), [], []
        return found


def measure(task: Task) -> list[Record]:
    """Return one record per wrapper and rank. Every rank calls this, and gets the same list.

    On CPUs, the clock times the phases, and each collective from its start to its arrival. On GPUs, the intervals are
    kernels from torch.profiler. Times are in ms after the start of the step, which all ranks start together.
    """
    records = []
    for wrapper in WRAPPERS:
        group = Watched(task.process_group)
        step = replica(task, wrapper, group=group)
        if isinstance(step.wrapped, DistributedDataParallel):
            # DDP reads the hook's annotations, and accepts only its own types or none.
            step.wrapped.register_comm_hook(group, lambda group, bucket: _watched_mean(group, bucket))
        for _ in range(WARM_UP):
            take(step)
        on_gpu = task.device.type == "cuda"
        intervals = _of_kernels(step, task.process_group) if on_gpu else marked(task, step, group)
        step.remove()
        end = max(interval[3] for interval in intervals)
        mine = {"rank": dist.get_rank(task.group), "step_ms": end, "intervals": intervals}
        about = task.about | {"kind": "timeline", "wrapper": wrapper}
        about["source"] = "profiler" if on_gpu else "marks"
        records += [about | of_rank for of_rank in gathered(mine, task.group)]
    return records


def _watched_mean(group: Watched, bucket: Any) -> Any:
    """Average a bucket with DistributedDataParallel's own all-reduce, as a hook."""
    x = bucket.buffer().div_(group.size)
    future = dist.all_reduce(x, group=group.group, async_op=True).get_future()
    return group.watch(future, x.nbytes).then(lambda future: future.value()[0])


def marked(task: Task, step: TrainingStep, group: Any) -> list[Interval]:
    """Run several steps; return the intervals of the one with the median time on the slowest rank.

    group: has a method taken(), which returns the messages since its last call, like `Watched`.
    """
    found = []
    for _ in range(TAKEN):
        group.taken()
        dist.barrier(task.process_group)
        begin = perf_counter()
        lane: list[Interval] = []
        for name, phase in step.phases():
            start = perf_counter()
            phase()
            lane.append(["compute", name, start, perf_counter(), None])
        lane += [["communication", "all-reduce", start, stop, nbytes] for start, stop, nbytes in group.taken()]
        found.append([[*what, _ms(start - begin), _ms(stop - begin), size] for *what, start, stop, size in lane])
    times = gathered([max(interval[3] for interval in intervals) for intervals in found], task.group)
    slowest = [max(of_step) for of_step in zip(*times, strict=True)]
    return found[slowest.index(sorted(slowest)[TAKEN // 2])]


def _of_kernels(step: TrainingStep, group: Any) -> list[Interval]:
    from labs_helpers.measure import trace

    dist.barrier(group)
    return intervals_of(trace.record(lambda: take(step)).events)


def intervals_of(events: list[Event]) -> list[Interval]:
    """Return the intervals of NCCL's kernels and of the other kernels; close compute kernels are merged.

    events: from `measure.trace`. Time starts at the first kernel.
    """
    kernels = [event for event in events if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset")]
    begin = min((event["ts"] for event in kernels), default=0.0)
    lanes: dict[str, list[Interval]] = {"compute": [], "communication": []}
    for event in sorted(kernels, key=lambda event: event["ts"]):
        name, what = ("communication", "all-reduce") if "nccl" in event["name"].lower() else ("compute", "kernels")
        lane = lanes[name]
        start, stop = event["ts"] - begin, event["ts"] + event["dur"] - begin
        if name == "compute" and lane and start - lane[-1][3] < GAP_US:
            lane[-1][3] = max(lane[-1][3], stop)
        else:
            lane.append([name, what, start, stop, None])
    both = lanes["compute"] + lanes["communication"]
    return [[lane, name, _ms(1e-6 * start), _ms(1e-6 * stop), size] for lane, name, start, stop, size in both]


def _ms(seconds: float) -> float:
    return round(1e3 * seconds, 3)
