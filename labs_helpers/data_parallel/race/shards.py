"""Candidates that share out what a rank holds: our ZeRO stages, ZeroRedundancyOptimizer, and fully_shard."""

from __future__ import annotations

from typing import Any

import torch
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from labs_helpers.data_parallel.race.setting import Setting, Step, priority_group
from labs_helpers.data_parallel.zero.stage1 import ZeRO1
from labs_helpers.data_parallel.zero.stage2 import ZeRO2
from labs_helpers.data_parallel.zero.stage3 import ZeRO3

STAGES = {"ZeRO-1": ZeRO1, "ZeRO-2": ZeRO2, "ZeRO-3": ZeRO3}


def stage(
    setting: Setting,
    name: str,
    priority: bool = False,
    max_ctas: int | None = None,
    master: bool = False,
    **options: Any,
) -> Step:
    """One of STAGES, with its options; stage 3's units are the blocks. master: computes in bfloat16, with float32
    master weights."""
    model = setting.model(torch.float32 if master else None)
    if master:
        options["compute_dtype"] = torch.bfloat16
    if name == "ZeRO-3":
        options["units"] = list(model.blocks)
    group = priority_group(max_ctas) if priority else None
    zero = STAGES[name](model, torch.optim.AdamW, group=group, **setting.adamw_options, **options)

    def step() -> torch.Tensor:
        loss = setting.loss(model)
        loss.backward()
        zero.step()
        zero.zero_grad()
        return loss.detach()

    return step


def zero_redundancy(setting: Setting, **options: Any) -> Step:
    """PyTorch's stage 1: DistributedDataParallel with `options`, and ZeroRedundancyOptimizer."""
    model = setting.model()
    devices = [setting.device.index] if setting.device.type == "cuda" else None
    ddp = DistributedDataParallel(model, devices, **options)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), torch.optim.AdamW, parameters_as_bucket_view=True, **setting.adamw_options
    )

    def step() -> torch.Tensor:
        loss = setting.loss(ddp)
        loss.backward()
        optimizer.step()
        model.zero_grad()
        return loss.detach()

    return step


def sharded_modules(setting: Setting, reshard_after_forward: bool = True, master: bool = False) -> Step:
    """PyTorch's stage 3: fully_shard of each block and of the model. master: as in `stage`; PyTorch reduces gradients
    in float32 unless it is told otherwise, as here."""
    model: Any = setting.model(torch.float32 if master else None)
    bfloat16 = torch.bfloat16 if master else None
    policy = MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=bfloat16)
    for part in [*model.blocks, model]:
        fully_shard(part, reshard_after_forward=reshard_after_forward, mp_policy=policy)
    optimizer = setting.adamw(model.parameters())

    def step() -> torch.Tensor:
        loss = setting.loss(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step
