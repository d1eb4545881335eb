"""Random traces in torch.profiler's format: threads that launch, streams that run the work later, and distractions."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

Event = dict[str, Any]
CALLS = (
    ("kernel", "cudaLaunchKernel", "gemm"),
    ("kernel", "cudaLaunchKernel", "gemm"),
    ("kernel", "cudaLaunchKernel", "pack_for_nccl"),
    ("kernel", "cudaGraphLaunch", "vectorized"),
    ("gpu_memcpy", "cudaMemcpyAsync", "Memcpy HtoD"),
    ("gpu_memset", "cudaMemsetAsync", "Memset"),
)
NAMES = ("aten::mm", "aten::add", "aten::copy_", "aten::sum", "aten::mul")
PARTS = {1: ("embedding", "attention", "mlp", "loss"), 2: ("loss", "backward")}  # of each thread
LABELS = (
    {"ph": "M", "name": "process_name", "pid": 31, "tid": 0, "args": {"name": "python"}},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 9.0, "pid": 31, "tid": 1},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 1, "ts": 14.0, "pid": 0, "tid": 7, "bp": "e"},
)


class Recorder:
    """Fills `events`. Times are multiples of 1/8 µs, whose sums float64 holds exactly, and no two pieces of GPU work
    have equal durations by chance."""

    def __init__(self, draw: np.random.Generator):
        self.draw, self.events = draw, [dict(label) for label in LABELS]
        self.ids, self._correlations = count(int(draw.integers(1, 50))), count(int(draw.integers(1, 50)))
        self._free = dict.fromkeys((7, 13, 20, 21), 0.0)  # when each stream finishes its queued work

    def some(self, low: float, high: float) -> float:
        return int(self.draw.integers(int(8 * low), int(8 * high))) / 8

    def event(self, cat: str, name: str, ts: float, dur: float, tid: int, **args: Any) -> None:
        given = {key.replace("_", " "): value for key, value in args.items() if value is not None}
        self.events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid, "args": given})

    def launch(self, tid: int, at: float, owner: int | None, busy: float) -> None:
        """Add a call of the runtime and the work it starts; a graph starts two pieces. busy: the longest duration of
        a piece in µs."""
        cat, call, name = CALLS[self.draw.integers(len(CALLS))]
        correlation, stream = next(self._correlations), int(self.draw.choice((7, 7, 13)))
        if cat == "kernel" and self.draw.random() < 0.3:
            name, stream = "ncclDevKernel_AllReduce", int(self.draw.choice((20, 21)))
        self.event("cuda_runtime", call, at, 0.5, tid, correlation=correlation, External_id=owner)
        start = max(at + self.some(1, 6), self._free[stream])
        for _ in range(1 + (call == "cudaGraphLaunch")):
            took = self.some(1, busy)
            self.event(cat, name, start, took, stream, correlation=correlation, External_id=owner, stream=stream)
            self._free[stream], start = start + took, start + took + 0.5
        if self.draw.random() < 0.3:
            self.event("gpu_user_annotation", "forward", start - 0.5, self.some(2, 30), stream, External_id=1)

    def wait(self, tid: int, at: float, dur: float) -> None:
        self.event("cuda_runtime", "cudaDeviceSynchronize", at, dur, tid, correlation=next(self._correlations))

    def operation(self, tid: int, at: float, busy: float) -> float:
        """Add a PyTorch operation with what it calls and launches; return when it ends."""
        own, began = next(self.ids), at
        inner = own if self.draw.random() < 0.6 else next(self.ids)
        at += 0.5
        for _ in range(self.draw.integers(0, 4)):
            self.launch(tid, at, inner, busy)
            at += self.some(1, 3)
        if inner != own:
            self.event("cpu_op", "aten::linear", began, at + 0.5 - began, tid, External_id=own)
        name = str(self.draw.choice(NAMES))
        self.event("cpu_op", name, began + 0.25, at + 0.125 - began, tid, External_id=inner)
        return at + 1.0


def drawn_trace(draw: np.random.Generator) -> list[Event]:
    """Return a trace in random order. Each of two threads has parts, not nested, some of them repeated, with work
    between them; some work has no operation, some no launch."""
    to = Recorder(draw)
    for tid, names in PARTS.items():
        at = to.some(1, 20)
        for _ in range(5):
            began, busy, own = at, float(draw.choice((4, 12, 30))), next(to.ids)
            for _ in range(draw.integers(0, 4)):
                at = to.operation(tid, at + 0.25, busy) + to.some(0, 12)
            if draw.random() < 0.5:
                to.wait(tid, at + 0.25, 0.75)
                to.launch(tid, at + 1.5, own, busy)  # ends after its part
                at += 1.25
            to.event("user_annotation", str(draw.choice(names)), began, at + 0.5 - began, tid, External_id=own)
            at = to.operation(tid, at + 2.0, busy) + to.some(1, 9)
            to.launch(tid, at, None, busy)
            at += 1.5
        to.wait(tid, at, to.some(1, 400))
    to.event("kernel", "from_before", to.some(0, 30), 2.375, 7, correlation=99_999, External_id=88_888, stream=7)
    to.event("gpu_memset", "Memset", to.some(0, 30), 1.625, 7, correlation=99_998, External_id=0, stream=7)
    return [to.events[place] for place in draw.permutation(len(to.events))]


def half_waiting(draw: np.random.Generator) -> list[Event]:
    """Return a trace in which a part works for exactly half of its span, with launches at its start and at its end."""
    to, busy = Recorder(draw), int(draw.integers(20, 90)) / 8
    to.event("user_annotation", "mask", 1.0, 50.0, 1, External_id=1)
    for number, (launched, at) in enumerate(((1.0, 10.0), (9.0, 10.0 + 3 * busy), (51.0, 60.0 + 5 * busy))):
        to.event("cuda_runtime", "cudaLaunchKernel", launched, 1.0, 1, correlation=number)
        to.event("kernel", "compare", at, busy, 7, correlation=number, stream=7)
    return to.events
