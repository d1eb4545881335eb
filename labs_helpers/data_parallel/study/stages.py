"""Training steps in which ranks share out what they hold: our ZeRO stages, and PyTorch's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.distributed.fsdp import CPUOffloadPolicy, OffloadPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer

from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.data_parallel.study.held import plain_bytes
from labs_helpers.data_parallel.study.replicas import TORCH, wrap
from labs_helpers.data_parallel.study.task import Task
from labs_helpers.data_parallel.study.turns import ALONE
from labs_helpers.data_parallel.zero.memory import held_bytes
from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer
from labs_helpers.data_parallel.zero.stage1 import ZeRO1
from labs_helpers.data_parallel.zero.stage2 import ZeRO2
from labs_helpers.data_parallel.zero.stage3 import ZeRO3

OURS: dict[str, tuple[type[ShardedOptimizer], dict[str, Any]]] = {
    "ZeRO-1": (ZeRO1, {}),
    "ZeRO-1, all-reduce": (ZeRO1, {"reduction": "all_reduce"}),
    "ZeRO-2": (ZeRO2, {}),
    "ZeRO-3": (ZeRO3, {}),
    "ZeRO-3, no prefetch": (ZeRO3, {"prefetch": False}),
    "SHARD_GRAD_OP": (ZeRO3, {"reshard_after_forward": False}),
}
# What each way divides, in the words of `accounting.STAGES`.
STAGE_OF = {
    ALONE: "DDP", "bucketed": "DDP", TORCH: "DDP", "ZeRO-1": "ZeRO-1", "ZeRO-1, all-reduce": "ZeRO-1",
    "ZeroRedundancyOptimizer": "ZeRO-1", "ZeRO-2": "ZeRO-2", "ZeRO-3": "ZeRO-3", "ZeRO-3, no prefetch": "ZeRO-3",
    "fully_shard": "ZeRO-3", "SHARD_GRAD_OP": "SHARD_GRAD_OP", "fully_shard, kept": "SHARD_GRAD_OP",
}  # fmt: skip
WAYS = tuple(STAGE_OF)
TORCHS = (TORCH, "ZeroRedundancyOptimizer", "fully_shard", "fully_shard, kept")


class Sharded:
    """One of WAYS but those that `replicas` has; see `turns.Step`. compute_dtype: of our stages, whose master weights
    are then in float32, whatever the task's dtype is. offload: what lies in the CPU's memory, "optimizer" or
    "parameters" as in `zero.bucket.Settings`; of PyTorch's, "parameters" for fully_shard alone."""

    def __init__(
        self, task: Task, way: str, compute_dtype: torch.dtype | None = None, offload: str | None = None
    ) -> None:
        self.setting, self.zero = task.setting, None
        model = self.model = self.setting.model()
        if way in OURS:
            stage, options = OURS[way]
            options = options | ({"units": list(model.blocks)} if stage is ZeRO3 else {"bucket_mb": task.bucket_mb})
            options |= self.setting.adamw_options | {"compute_dtype": compute_dtype, "offload": offload}
            options |= {"group": task.process_group}
            master = model.float() if compute_dtype else model
            self.zero = stage(master, torch.optim.AdamW, **options)
            self.wrapped: Any = model
            self.optimizer: Any = self.zero
        elif way == "ZeroRedundancyOptimizer":
            group = TorchCommunication(task.process_group)
            self.wrapped = wrap(model, TORCH, group, task.bucket_mb, lambda *_: iter(()), task.device)
            self.optimizer = ZeroRedundancyOptimizer(
                model.parameters(), torch.optim.AdamW, process_group=task.process_group,
                parameters_as_bucket_view=True, **self.setting.adamw_options,
            )  # fmt: skip
        else:
            policy = CPUOffloadPolicy() if offload else OffloadPolicy()
            for unit in (*model.blocks, model):
                fully_shard(unit, reshard_after_forward=way == "fully_shard", offload_policy=policy)
            self.wrapped = model
            self.optimizer = self.setting.adamw(model.parameters())
        self.loss = torch.zeros(())

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        yield "forward", self.forward
        yield "backward", self.backward
        yield "update", self.update

    def forward(self) -> None:
        self.tracked = self.setting.loss(self.wrapped)
        self.loss = self.tracked.detach()

    def backward(self) -> None:
        self.tracked.backward()
        del self.tracked

    def update(self) -> None:
        self.optimizer.step()
        if self.zero is None:
            self.model.zero_grad()
        else:
            self.zero.zero_grad()

    def held(self) -> dict[str, int]:
        """Bytes of `zero.memory.PARTS` on this rank."""
        return held_bytes(self.zero) if self.zero else plain_bytes(self.model, self.optimizer)

    @property
    def bytes_sent(self) -> int | None:
        """Since it was made, by the ring; None of PyTorch's."""
        return self.zero.group.bytes_sent if self.zero else None

    def remove(self) -> None:
        if self.zero is not None:
            self.zero.remove()
