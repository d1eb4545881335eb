"""A training step with a student's functions, timed in turns with the other ways; runs on the ranks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from labs_helpers.communication.buckets import MEGABYTE, trained_parameters
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import Options, Record, Task
from labs_helpers.data_parallel.study.turns import race

WAYS = (ALONE, "naive", "flat", "overlapped", "bucketed")


def way(task: Task, name: str, functions: Mapping[str, Callable]) -> TrainingStep:
    """A step of lab 01's transformer on this rank, its gradients averaged in one of WAYS.

    functions: a student's, by the names of the exercises.
    """
    model, group = task.setting.model(), task.process_group
    finish = {ALONE: lambda: None}
    finish["naive"] = partial(functions["average_gradients"], model, group)
    finish["flat"] = partial(functions["flat_average"], model, group)
    if name == "overlapped":
        finish[name] = functions["overlapped"](model, group)
    if name == "bucketed":
        size = task.bucket_mb * MEGABYTE
        buckets = functions["make_buckets"](trained_parameters(model.parameters()), size, size)
        finish[name], _ = functions["bucketed"](model, group, buckets)
    return TrainingStep(task.setting, model, task.setting.adamw(model.parameters()), finish=finish[name])


def measure_ways(functions: Mapping[str, Callable], **options) -> list[Record]:
    """A record per way, of the study's kind 'wrapper'; every rank calls it. options: of `study.task.Options`."""
    task = Task.here(Options(**options))
    found = race(task, {name: way(task, name, functions) for name in WAYS})
    alone, naive = found[ALONE]["step_ms"], found["naive"]["step_ms"]
    same = task.about | {"kind": "wrapper", "alone_ms": alone, "naive_ms": naive}
    return [same | {"wrapper": name, "exposed_ms": one["step_ms"] - alone} | one for name, one in found.items()]
