"""Training steps in which ranks share out what they hold, by the names that the study's records give them."""

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
# What each way divides, in the words of `accounting.STAGES`.
STAGE_OF = {
    ALONE: "DDP", "bucketed": "DDP", TORCH: "DDP", "ZeRO-1": "ZeRO-1", "ZeRO-1, all-reduce": "ZeRO-1",
    "ZeroRedundancyOptimizer": "ZeRO-1", "ZeRO-2": "ZeRO-2", "ZeRO-3": "ZeRO-3", "ZeRO-3, no prefetch": "ZeRO-3",
    "fully_shard": "ZeRO-3", "SHARD_GRAD_OP": "SHARD_GRAD_OP", "fully_shard, kept": "SHARD_GRAD_OP",
}  # fmt: skip
WAYS = tuple(STAGE_OF)
TORCHS = (TORCH, "ZeroRedundancyOptimizer", "fully_shard", "fully_shard, kept")


def sharded(task: Task, way: str, master: bool = False, offload: str | None = None) -> TrainingStep:
    """One of WAYS but those that `replicas` has. master: of our stages, computes in bfloat16 with float32 master
    weights, whatever the task's dtype is. offload: what lies in the CPU's memory, "optimizer" or "parameters" as in
    `zero.bucket.Settings`; of PyTorch's, "parameters" for fully_shard alone."""
    setting, group, size = task.setting, task.process_group, task.bucket_mb
    if way in OURS:
        stage, options = OURS[way]
        options = options | ({} if stage == "ZeRO-3" else {"bucket_mb": size})
        return ways.zero(setting, stage, group, master, offload=offload, **options)
    if way == "ZeroRedundancyOptimizer":
        return ways.zero_redundancy(setting, group, bucket_cap_mb=size, gradient_as_bucket_view=True)
    return ways.fully_sharded(setting, reshard_after_forward=way == "fully_shard", offload=bool(offload))
