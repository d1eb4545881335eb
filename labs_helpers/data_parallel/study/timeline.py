"""Kind `timeline`: when a rank computes and when its gradients are on their way, in one step of each wrapper."""

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

TAKEN = 5  # steps, of which the median one is kept
GAP_US = 300.0  # between two kernels that are drawn as one: launches of a traced step come late
Interval = list[Any]  # lane, name, start in ms, stop in ms, bytes or None


class Watched(TorchCommunication):
    """Notes when each mean begins, and when it has arrived, as gloo's threads say. notes: (start, stop, bytes)."""

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
        """The notes so far, which are then forgotten."""
        for future in self.arriving:
            future.wait()
        found, self.notes, self.arriving = sorted(self.notes), [], []
        return found


def measure(task: Task) -> list[Record]:
    """A record per wrapper and rank. Every rank calls it; the same list on all.

    On CPUs the phases by the clock and each collective from its start to its arrival; on GPUs their kernels, as
    torch.profiler has them. Times are in ms from the beginning of the step, which all ranks begin together.
    """
    records = []
    for wrapper in WRAPPERS:
        group = Watched(task.process_group)
        step = replica(task, wrapper, group=group)
        if isinstance(step.wrapped, DistributedDataParallel):
            # It reads the annotations of its hook, and wants none or its own.
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
    """DistributedDataParallel's own all-reduce, as a hook."""
    x = bucket.buffer().div_(group.size)
    future = dist.all_reduce(x, group=group.group, async_op=True).get_future()
    return group.watch(future, x.nbytes).then(lambda future: future.value()[0])


def marked(task: Task, step: TrainingStep, group: Any) -> list[Interval]:
    """Of several steps the one whose time, on the slowest rank, is the median. group.taken(): the messages since the
    last call, as `Watched` has them."""
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
    """NCCL's kernels, and the others, merged where they follow each other closely. events: as `measure.trace` has
    them; the time begins with the first kernel."""
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
