"""A practice GPU: a training step on a device with its own clock, to show what 'asynchronous' means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import count, cycle
from typing import Any, NamedTuple

_SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
_STREAM = {"stream": 7}  # the default stream in PyTorch's traces


class Phase(NamedTuple):
    """The work of one call: `kernels` kernels. Launching one takes the CPU `host_us`, running it takes the GPU
    `gpu_us`."""

    kernels: int
    host_us: float
    gpu_us: float


# Training steps of three kinds, as in PracticeGPU(**HOST_BOUND).
GPU_BOUND = {"forward": Phase(4, 50, 500), "backward": Phase(8, 50, 520), "update": Phase(3, 40, 250)}
HOST_BOUND = {"forward": Phase(10, 90, 30), "backward": Phase(20, 80, 36), "update": Phase(25, 60, 12)}
# Forward and backward keep the GPU busy; the many small kernels of a plain optimizer do not.
UPDATE_HOST_BOUND = {"forward": Phase(3, 60, 300), "backward": Phase(6, 60, 310), "update": Phase(60, 55, 8)}


class Loss:
    """The result of forward(), which backward(loss) uses up."""

    def __init__(self) -> None:
        self.used = False


class PracticeGPU:
    """A model and the GPU that trains it. They compute nothing; only the time of their own clock passes.

    CPU and GPU work side by side. The CPU calls forward(), backward(loss) and update(). Each launches its kernels one
    after the other, `host_us` each, and returns. A launch puts a kernel on a queue. The GPU takes kernels from the
    queue's other end and runs them one after the other, `gpu_us` each. So a call returns when its last kernel is on the
    queue, not when it is done: that is 'asynchronous'. clock() tells the CPU's time, in seconds. synchronize() has the
    CPU wait until the queue is empty.

    >>> gpu = PracticeGPU(forward=Phase(kernels=4, host_us=50, gpu_us=500))
    >>> started = gpu.clock()
    >>> loss = gpu.forward()
    >>> round(1e3 * (gpu.clock() - started), 3)  # ms: four launches
    0.2
    >>> gpu.synchronize()
    >>> round(1e3 * (gpu.clock() - started), 3)  # one launch, then four kernels
    2.05

    As in PyTorch, a second backward(loss) of the same loss is a RuntimeError, and update() without gradients, which
    backward makes and update uses up, does nothing.

    compile_us: how much longer each function's first call takes the CPU, its second, and so on. late_us: how long
    after the queue's end synchronize() returns if it had to wait, wait by wait and cyclically, because a CPU also has
    other things to do. timeline() returns a trace of everything; queued_us lists the µs of work that the GPU still
    had to do at each reading of the clock.
    """

    def __init__(
        self,
        forward: Phase = GPU_BOUND["forward"],
        backward: Phase = GPU_BOUND["backward"],
        update: Phase = GPU_BOUND["update"],
        *,
        compile_us: Sequence[float] = (),
        late_us: Sequence[float] = (),
    ) -> None:
        self.queued_us: list[float] = []
        self._phases = {"forward": forward, "backward": backward, "update": update}
        self._compile_us, self._late_us = tuple(compile_us), cycle(tuple(late_us) or (0,))
        self._now = self._queue_ends = 12_500_000.0  # µs; a clock does not start at zero
        self._has_gradients = False
        self._calls: Counter[str] = Counter()
        self._ids, self._correlations = count(1), count(1)
        self._events: list[dict[str, Any]] = []

    def forward(self) -> Loss:
        """Queue the forward pass; its loss serves one backward pass."""
        self._launch("forward")
        return Loss()

    def backward(self, loss: Loss) -> None:
        """Queue the backward pass of a loss. TypeError if it is no loss, RuntimeError if it was already used."""
        if not isinstance(loss, Loss):
            raise TypeError(f"backward(loss) takes what forward() returned, not {loss!r}")
        if loss.used:
            raise RuntimeError(_SECOND_TIME)
        loss.used = self._has_gradients = True
        self._launch("backward")

    def update(self) -> None:
        """Queue the optimizer's step and drop the gradients; do nothing if there are none."""
        if self._has_gradients:
            self._has_gradients = False
            self._launch("update")

    def synchronize(self) -> None:
        """Return when the queue is empty."""
        started = self._now
        if self._queue_ends > self._now:
            self._now = self._queue_ends + next(self._late_us)
        args = {"correlation": next(self._correlations), "External id": 0}
        self._happened("cuda_runtime", "cudaDeviceSynchronize", started, self._now, args)

    def clock(self) -> float:
        """Return the CPU's time in seconds. Reading it takes no time."""
        self.queued_us.append(max(0.0, self._queue_ends - self._now))
        return self._now / 1e6

    def timeline(self) -> list[dict[str, Any]]:
        """Return everything that has happened so far as a trace's events, in the form of
        `measure.trace.Trace.events`. A call is a "cpu_op", launches and waits are "cuda_runtime", the GPU's work is
        "kernel", and a "gpu_user_annotation" names the call that launched it."""
        begin = min((event["ts"] for event in self._events), default=0.0)
        events = [event | {"ts": event["ts"] - begin} for event in self._events]
        return sorted(events, key=lambda event: (event["ts"], -event["dur"]))

    def _launch(self, name: str) -> None:
        called, (kernels, host_us, gpu_us), number = self._now, self._phases[name], {"External id": next(self._ids)}
        self._now += sum(self._compile_us[self._calls[name] :][:1])
        self._calls[name] += 1
        starts = []
        for _ in range(kernels):
            launched, args = self._now, {"correlation": next(self._correlations)} | number
            self._now += host_us
            # A kernel starts when it has been launched and the one before it has ended.
            starts.append(max(self._now, self._queue_ends))
            self._queue_ends = starts[-1] + gpu_us
            self._happened("cuda_runtime", "cudaLaunchKernel", launched, self._now, args)
            self._happened("kernel", name, starts[-1], self._queue_ends, args | _STREAM)
        if starts:
            self._happened("gpu_user_annotation", name, starts[0], self._queue_ends, _STREAM | number)
        self._happened("cpu_op", name, called, self._now, number | {"Input Dims": [], "Input type": []})

    def _happened(self, cat: str, name: str, start: float, end: float, args: dict[str, Any]) -> None:
        tid = args.get("stream", 1)
        event = {"ph": "X", "cat": cat, "name": name, "ts": start, "dur": end - start, "tid": tid, "args": args}
        self._events.append(event)
