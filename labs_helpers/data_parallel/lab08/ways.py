"""A training step with a student's functions, timed in turns with the other ways; runs on the ranks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from labs_helpers.communication.buckets import MEGABYTE, trained_parameters
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.task import Options, Record, Task
from labs_helpers.data_parallel.study.turns import race

WAYS = (ALONE, "naive", "flat", "overlapped", "bucketed")


class Way:
    """A step of lab 01's transformer on this rank, its gradients averaged in one of WAYS; see `study.turns.Step`.

    functions: a student's, by the names of the exercises.
    """

    def __init__(self, task: Task, name: str, functions: Mapping[str, Callable]) -> None:
        self.setting, group = task.setting, task.process_group
        self.model = self.setting.model()
        self.optimizer = self.setting.adamw(self.model.parameters())
        after = {ALONE: lambda: None}
        after["naive"] = partial(functions["average_gradients"], self.model, group)
        after["flat"] = partial(functions["flat_average"], self.model, group)
        if name == "overlapped":
            after[name] = functions["overlapped"](self.model, group)
        if name == "bucketed":
            size = task.bucket_mb * MEGABYTE
            buckets = functions["make_buckets"](trained_parameters(self.model.parameters()), size, size)
            after[name], _ = functions["bucketed"](self.model, group, buckets)
        self.finish = after[name]

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "forward", self._forward
        yield "backward", self._backward
        yield "finish", self.finish
        yield "update", self._update

    def _forward(self) -> None:
        self.total = self.setting.loss(self.model)
        self.loss = self.total.detach()

    def _backward(self) -> None:
        self.total.backward()
        del self.total

    def _update(self) -> None:
        self.optimizer.step()
        self.model.zero_grad()


def measure_ways(functions: Mapping[str, Callable], **options) -> list[Record]:
    """A record per way, of the study's kind 'wrapper'; every rank calls it. options: of `study.task.Options`."""
    task = Task.here(Options(**options))
    found = race(task, {name: Way(task, name, functions) for name in WAYS})
    alone, naive = found[ALONE]["step_ms"], found["naive"]["step_ms"]
    same = task.about | {"kind": "wrapper", "alone_ms": alone, "naive_ms": naive}
    return [same | {"wrapper": name, "exposed_ms": one["step_ms"] - alone} | one for name, one in found.items()]
