"""Time training steps with a student's functions, in turns, on the ranks of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from labs_helpers.communication.buckets import MEGABYTE, trained_parameters
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import Options, Record, Task
from labs_helpers.data_parallel.study.turns import race
from labs_helpers.measure.race import TorchRanks
from labs_helpers.measure.step_timeline import by_clock

WAYS = (ALONE, "naive", "flat", "bucketed", "overlapped")


def way(task: Task, name: str, functions: Mapping[str, Callable], group: Any) -> TrainingStep:
    """Return a training step of lab 01's transformer that averages gradients over `group` in one of WAYS.

    functions: the student's functions, by the names of the exercises.
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
    """Time each way on CPUs over a `Link`; return records of the study's kinds 'wrapper' and 'timeline'.

    alpha, beta: the link's cost, in seconds and in seconds per byte. options: fields of `study.task.Options`. Every
    rank calls this.
    """
    from labs_helpers.data_parallel.lab08.link import the_link  # the notebook's own process makes no link

    link = the_link()
    link.over(link.carrier, alpha, beta)
    task = Task(Options(**options), torch.device("cpu"), group=link.carrier)
    steps = {name: way(task, name, functions, link) for name in WAYS}
    found = race(task, steps)
    alone, naive, about = found[ALONE]["step_ms"], found["naive"]["step_ms"], task.about
    ranks = TorchRanks(task.group)
    lanes = {name: ranks.gather(by_clock(step.phases, link.taken, ranks))[0] for name, step in steps.items()}
    same = about | {"kind": "wrapper", "alone_ms": alone, "naive_ms": naive, "bucket_mb": task.bucket_mb}
    records = [same | {"wrapper": name, "exposed_ms": one["step_ms"] - alone} | one for name, one in found.items()]
    taken = {"kind": "timeline", "rank": 0, "source": "marks"}
    return records + [
        about | taken | {"wrapper": name, "step_ms": max(one[3] for one in intervals), "intervals": intervals}
        for name, intervals in lanes.items()
    ]
