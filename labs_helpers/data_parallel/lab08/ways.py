"""A training step with a student's functions, timed in turns with the other ways; runs on the ranks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from labs_helpers.communication.buckets import MEGABYTE, trained_parameters
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import Options, Record, Task, gathered
from labs_helpers.data_parallel.study.timeline import marked
from labs_helpers.data_parallel.study.turns import race

WAYS = (ALONE, "naive", "flat", "bucketed", "overlapped")


def way(task: Task, name: str, functions: Mapping[str, Callable], group: Any) -> TrainingStep:
    """A step of lab 01's transformer on this rank, its gradients averaged over `group` in one of WAYS.

    functions: a student's, by the names of the exercises.
    """
    model = task.setting.model()
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


def measure_ways(
    functions: Mapping[str, Callable], alpha: float = 0.0, beta: float = 0.0, **options: Any
) -> list[Record]:
    """Records of the study's kinds 'wrapper' and 'timeline' for each way, on CPUs, over a `Link` with this α and β in
    seconds; every rank calls it. options: of `study.task.Options`."""
    from labs_helpers.data_parallel.lab08.link import the_link  # with the notebook's own process there is none

    link = the_link()
    link.over(link.carrier, alpha, beta)
    task = Task(Options(**options), torch.device("cpu"), group=link.carrier)
    steps = {name: way(task, name, functions, link) for name in WAYS}
    found = race(task, steps)
    alone, naive, about = found[ALONE]["step_ms"], found["naive"]["step_ms"], task.about
    lanes = {name: gathered(marked(task, step, link), task.group)[0] for name, step in steps.items()}
    same = about | {"kind": "wrapper", "alone_ms": alone, "naive_ms": naive, "bucket_mb": task.bucket_mb}
    records = [same | {"wrapper": name, "exposed_ms": one["step_ms"] - alone} | one for name, one in found.items()]
    taken = {"kind": "timeline", "rank": 0, "source": "marks"}
    return records + [
        about | taken | {"wrapper": name, "step_ms": max(one[3] for one in intervals), "intervals": intervals}
        for name, intervals in lanes.items()
    ]
