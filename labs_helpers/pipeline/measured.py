"""Measure a pipeline's timeline: when each rank began and ended each computation, on one clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from labs_helpers.pipeline.executor import Pipeline
from labs_helpers.pipeline.schedule import Action
from labs_helpers.pipeline.simulate import Bar, Timeline

Gather = Callable[[Any], list[Any]]


class Recorder:
    """Records each computation of a `Pipeline`: on a CPU by the clock, on a GPU by events in its stream.

    with Recorder(pipeline) as recorder:
        pipeline.run(inputs, targets)
    recorder.bars()
    """

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        self.on_gpu = pipeline.group.device.type == "cuda"
        self.marks: list[tuple[Action, Any, Any]] = []

    def __enter__(self) -> Recorder:
        self.before, self.pipeline.watch = self.pipeline.watch, self._watch
        if self.on_gpu:
            torch.cuda.synchronize()
        self.origin = self._now()
        self.clock = perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        self.pipeline.watch = self.before

    @contextmanager
    def _watch(self, action: Action) -> Iterator[None]:
        start = self._now()
        with self.before(action):
            yield
        self.marks.append((action, start, self._now()))

    def _now(self) -> Any:
        if not self.on_gpu:
            return perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def bars(self) -> list[Bar]:
        """Return the computations, in seconds of `perf_counter`, which all processes of a machine share."""
        rank = self.pipeline.group.rank
        if not self.on_gpu:
            return [Bar(rank, action, start, stop) for action, start, stop in self.marks]
        torch.cuda.synchronize()
        at = [(a, self.origin.elapsed_time(start), self.origin.elapsed_time(stop)) for a, start, stop in self.marks]
        return [Bar(rank, action, self.clock + 1e-3 * start, self.clock + 1e-3 * stop) for action, start, stop in at]


def measure(
    pipeline: Pipeline,
    inputs: Sequence[Tensor] | None,
    targets: Sequence[Tensor] | None,
    gather: Gather,
    repeats: int = 3,
) -> Timeline:
    """Return the timeline of the run with the median length among `repeats`, after one that is not measured.

    gather(value) → every rank's value, on every rank; it also makes the ranks start together. Every rank calls this.
    """
    pipeline.run(inputs, targets)
    found = []
    for _ in range(repeats):
        gather(None)
        with Recorder(pipeline) as recorder:
            pipeline.run(inputs, targets)
        bars = [bar for of_rank in gather(recorder.bars()) for bar in of_rank]
        found.append(Timeline(pipeline.schedule.name, pipeline.schedule.ranks, bars))
    return sorted(found, key=lambda timeline: timeline.seconds)[repeats // 2]
