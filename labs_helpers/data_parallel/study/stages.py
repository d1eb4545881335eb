"""Training steps with sharded states, by their names in the study's records."""

from __future__ import annotations

from typing import Any

from labs_helpers.data_parallel.study import ways
from labs_helpers.data_parallel.study.records import ALONE
from labs_helpers.data_parallel.study.replicas import TORCH
from labs_helpers.data_parallel.study.step import TrainingStep
from labs_helpers.data_parallel.study.task import Task

OURS: dict[str, tuple[str, dict[str, Any]]] = {
    "ZeRO-1": ("ZeRO-1", {}),
    "ZeRO-1, all-reduce": ("ZeRO-1", {"reduction": "all_reduce"}),
    "ZeRO-2": ("ZeRO-2", {}),
    "ZeRO-3": ("ZeRO-3", {}),
    "ZeRO-3, no prefetch": ("ZeRO-3", {"prefetch": False}),
    "SHARD_GRAD_OP": ("ZeRO-3", {"reshard_after_forward": False}),
}
# The stage of each way, as named in `accounting.STAGES`.
STAGE_OF = {
    ALONE: "DDP", "bucketed": "DDP", TORCH: "DDP", "ZeRO-1": "ZeRO-1", "ZeRO-1, all-reduce": "ZeRO-1",
    "ZeroRedundancyOptimizer": "ZeRO-1", "ZeRO-2": "ZeRO-2", "ZeRO-3": "ZeRO-3", "ZeRO-3, no prefetch": "ZeRO-3",
    "fully_shard": "ZeRO-3", "SHARD_GRAD_OP": "SHARD_GRAD_OP", "fully_shard, kept": "SHARD_GRAD_OP",
}  # fmt: skip
WAYS = tuple(STAGE_OF)
TORCHS = (TORCH, "ZeroRedundancyOptimizer", "fully_shard", "fully_shard, kept")


def sharded(task: Task, way: str, master: bool = False, offload: str | None = None) -> TrainingStep:
    """Return a training step of one of WAYS that shards states; `replicas` has the others.

    master: our stages compute in bfloat16 with float32 master weights, regardless of the task's dtype. offload: keep
    "optimizer" or "parameters" in the CPU's memory, see `zero.bucket.Settings`; of PyTorch's ways, only fully_shard
    supports it, with "parameters".
    """
    setting, group, size = task.setting, task.process_group, task.bucket_mb
    if way in OURS:
        stage, options = OURS[way]
        options = options | ({} if stage == "ZeRO-3" else {"bucket_mb": size})
        return ways.zero(setting, stage, group, master, offload=offload, **options)
    if way == "ZeroRedundancyOptimizer":
        return ways.zero_redundancy(setting, group, bucket_cap_mb=size, gradient_as_bucket_view=True)
    return ways.fully_sharded(setting, reshard_after_forward=way == "fully_shard", offload=bool(offload))
