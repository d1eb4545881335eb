"""Training steps of replicas, by their names in the study's records."""

from __future__ import annotations

from typing import Any

from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.data_parallel.ddp.hook import CommunicationHook, average
from labs_helpers.data_parallel.study import ways
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.step import LAST, TrainingStep
from labs_helpers.data_parallel.study.task import Task

TORCH = "DistributedDataParallel"
OURS = {"naive": "NaiveDDP", "flat": "FlatDDP", "overlapped": "OverlappedDDP", "bucketed": "BucketedDDP"}
WRAPPERS = (ALONE, *OURS, TORCH)


def replica(
    task: Task,
    wrapper: str,
    *,
    bucket_mb: float | None = None,
    passes: int = 1,
    sync: str = LAST,
    hook: CommunicationHook = average,
    group: TorchCommunication | None = None,
) -> TrainingStep:
    """Return a training step of a wrapped replica on each rank.

    wrapper: one of WRAPPERS. bucket_mb: the bucket size of "bucketed" and TORCH, including the first bucket. group: the
    communication of our wrappers, by default a new TorchCommunication of the task's ranks. passes, sync: see
    `TrainingStep`. hook: the communication hook of "bucketed".
    """
    size, setting = bucket_mb or task.bucket_mb, task.setting
    if wrapper == ALONE:
        return ways.alone(setting, passes, finish=_nothing)
    group = group or TorchCommunication(task.process_group)
    if wrapper == TORCH:
        return ways.distributed_data_parallel(
            setting, group.group, passes, _nothing, bucket_cap_mb=size, gradient_as_bucket_view=True
        )
    options: dict[str, Any] = {"passes": passes, "sync": sync}
    if wrapper == "bucketed":
        options |= {"bucket_mb": size, "first_bucket_mb": min(1.0, size), "hook": hook}
    return ways.ours(setting, OURS[wrapper], group, **options)


def _nothing() -> None: ...
