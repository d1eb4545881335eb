"""Capture the computations of a pipeline as CUDA graphs, so that the host launches each of them in one call.

A stage's pass consists of hundreds of kernels. If Python needs longer to launch them than the GPU to run them, every
schedule waits for the host. A pipeline's order is known before it runs, so each computation is captured once, in this
order, and replayed in it. The graphs therefore share one memory pool, and a step needs no more memory than an eager one
but for the buffers of its messages, which stay outside the graphs.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
from torch import Tensor

from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.messages import message_for
from labs_helpers.pipeline.schedule import (
    COMPUTE,
    FREE,
    RECEIVE_GRADIENT,
    RECEIVE_INPUT,
    SEND_GRADIENT,
    SEND_OUTPUT,
    Action,
)

WARM_UP = 2  # eager runs before the capture: libraries set themselves up in the first


class CudaGraphs:
    """Graphs that share one memory pool. They have to be replayed in the order in which they were captured."""

    def __init__(self) -> None:
        gc.collect()  # what ran before must not be freed during a capture
        torch.cuda.synchronize()
        self.pool = torch.cuda.graph_pool_handle()

    def capture(self, function: Callable[[], None]) -> Callable[[], None]:
        """Capture what `function` launches, without running it; return the function that launches it."""
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.stream(_stream()):
            # NCCL's watchdog calls CUDA in a thread of its own, which must not end the capture.
            graph.capture_begin(self.pool, capture_error_mode="thread_local")
            try:
                function()
            finally:
                graph.capture_end()
        return graph.replay


@cache
def _stream() -> torch.cuda.Stream:
    """Return the stream of all captures: cuBLAS allocates a workspace for every stream."""
    return torch.cuda.Stream()


class GraphedPipeline(Pipeline):
    """A `Pipeline` whose runs replay CUDA graphs, after WARM_UP eager ones and a capture.

    It differs from a `Pipeline` in three ways: a run sets .grad instead of adding to it, `scale` is that of the
    captured run, and inputs and targets always have the same shapes. graphs: makes an object that captures functions.
    Raises ValueError for a schedule without backward passes.
    """

    def __init__(self, *given: Any, graphs: Callable[[], Any] = CudaGraphs, **named: Any) -> None:
        super().__init__(*given, **named)
        if not self.schedule.trains:
            raise ValueError(f"{self.schedule.name} has no backward passes, so it cannot be captured")
        self.graphs = graphs
        self.runs = 0
        self.launch: dict[Action, Callable[[], None]] = {}
        self.buffers: dict[Action, Tensor] = {}  # message → the tensor that is sent, or received into
        self.parameters = [p for stage in self.stages.values() for p in stage.parameters()]

    def run(
        self, inputs: Sequence[Tensor] | None = None, targets: Sequence[Tensor] | None = None, scale: float = 1.0
    ) -> list[Tensor]:
        self.runs += 1
        if self.runs <= WARM_UP + 1:
            for parameter in self.parameters:
                parameter.grad = None
        if self.runs <= WARM_UP:
            return super().run(inputs, targets, scale)
        if self.runs == WARM_UP + 1:
            with torch.enable_grad():
                self._capture(inputs, targets, scale)
        else:
            self._refill("inputs", self.inputs, self._given("inputs", inputs, 0))
            self._refill("targets", self.targets, self._given("targets", targets, self.schedule.stages - 1))
        for action in self.schedule.orders[self.group.rank]:
            if action.kind in COMPUTE:
                message = message_for(self.schedule, action)
                if message is not None:
                    self.arriving.pop(message)[1].wait()
                with self.watch(action):
                    self.launch[action]()
            elif action.kind in (RECEIVE_INPUT, RECEIVE_GRADIENT):
                self._receive_into(self.buffers[action], action)
            elif action.kind in (SEND_OUTPUT, SEND_GRADIENT):
                self._send(self.buffers[action], action.stage + (1 if action.kind == SEND_OUTPUT else -1))
        self._finish_sends()
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        return [loss.clone() for _, loss in sorted(self.losses.items())]

    @staticmethod
    def _refill(name: str, buffers: Sequence[Tensor], given: Sequence[Tensor]) -> None:
        for buffer, tensor in zip(buffers, given, strict=True):
            if (buffer.shape, buffer.dtype) != (tensor.shape, tensor.dtype):
                captured = f"{tuple(buffer.shape)} in {buffer.dtype}"
                raise ValueError(f"{name} of {tuple(tensor.shape)} in {tensor.dtype}; captured were {captured}")
            buffer.copy_(tensor)

    def _capture(self, inputs: Sequence[Tensor] | None, targets: Sequence[Tensor] | None, scale: float) -> None:
        """Capture every computation in order, without a message.

        A buffer to receive into is used again when its micro-batch has been freed. One to send from stays alive,
        because nothing here says when its message has left.
        """
        graphs = self.graphs()
        own = [None if part is None else [tensor.clone() for tensor in part] for part in (inputs, targets)]
        self._begin(own[0], own[1], scale)
        spare: list[Tensor] = []
        received: dict[tuple[int, int], list[Tensor]] = defaultdict(list)  # (stage, micro-batch) → its buffers
        for action in self.schedule.orders[self.group.rank]:
            kind, place = action.kind, (action.stage, action.micro)
            if kind in COMPUTE:
                self.launch[action] = graphs.capture(lambda action=action: self._do[action.kind](action))
            elif kind in (RECEIVE_INPUT, RECEIVE_GRADIENT):
                self.buffers[action] = spare.pop() if spare else self._empty()
                received[place].append(self.buffers[action])
                self._place(action, self.buffers[action].detach())
            elif kind == SEND_OUTPUT:
                self.buffers[action] = self.y[place].detach()
            elif kind == SEND_GRADIENT:
                self.buffers[action] = self.dx.pop(place)
            elif kind == FREE:
                self._free(action)
                spare += received.pop(place, [])
        self.gradients = [parameter.grad for parameter in self.parameters]
