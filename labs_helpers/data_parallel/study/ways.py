"""Our and PyTorch's ways to train on several ranks, each as a `TrainingStep` with a new model."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from labs_helpers.data_parallel.ddp.base import DDP
from labs_helpers.data_parallel.ddp.bucketed import BucketedDDP
from labs_helpers.data_parallel.ddp.flat import FlatDDP
from labs_helpers.data_parallel.ddp.naive import NaiveDDP
from labs_helpers.data_parallel.ddp.overlapped import OverlappedDDP
from labs_helpers.data_parallel.study.setting import Setting
from labs_helpers.data_parallel.study.step import LAST, TrainingStep
from labs_helpers.data_parallel.zero.stage1 import ZeRO1
from labs_helpers.data_parallel.zero.stage2 import ZeRO2
from labs_helpers.data_parallel.zero.stage3 import ZeRO3

DDPS: dict[str, type[DDP]] = {
    "NaiveDDP": NaiveDDP, "FlatDDP": FlatDDP, "OverlappedDDP": OverlappedDDP, "BucketedDDP": BucketedDDP,
}  # fmt: skip
STAGES = {"ZeRO-1": ZeRO1, "ZeRO-2": ZeRO2, "ZeRO-3": ZeRO3}


def alone(setting: Setting, passes: int = 1, finish: Any = None) -> TrainingStep:
    """Train a separate model on every rank without communication, as a lower bound on the time."""
    model = setting.model()
    return TrainingStep(setting, model, setting.adamw(model.parameters()), passes=passes, finish=finish)


def ours(
    setting: Setting, name: str, group: Any = None, by_bucket: bool = False, passes: int = 1, sync: str = LAST,
    **options: Any,
) -> TrainingStep:  # fmt: skip
    """Train with one of DDPS and its options. by_bucket: one optimizer per bucket, see `HookedDDP.finished`."""
    model = setting.model()
    ddp: Any = DDPS[name](model, group, **options)
    if not by_bucket:
        optimizer = setting.adamw(model.parameters())
        return TrainingStep(
            setting, model, optimizer, wrapped=ddp, finish=lambda: ddp.finish(), passes=passes, sync=sync
        )
    optimizers = [setting.adamw(bucket.parameters) for bucket in ddp.buckets]

    def update() -> None:
        for number in ddp.finished():
            optimizers[number].step()

    return TrainingStep(setting, model, optimizers[0], wrapped=ddp, update=update)


def distributed_data_parallel(
    setting: Setting, group: Any = None, passes: int = 1, finish: Any = None, **options: Any
) -> TrainingStep:
    """Train with DistributedDataParallel and its options."""
    model = setting.model()
    ddp = _wrapped(model, setting, group, options)
    optimizer = setting.adamw(model.parameters())
    return TrainingStep(setting, model, optimizer, wrapped=ddp, finish=finish, theirs=True, passes=passes)


def _wrapped(model: torch.nn.Module, setting: Setting, group: Any, options: dict[str, Any]) -> DistributedDataParallel:
    devices = [setting.device.index] if setting.device.type == "cuda" else None
    return DistributedDataParallel(model, devices, process_group=group, **options)


def zero(setting: Setting, name: str, group: Any = None, master: bool = False, **options: Any) -> TrainingStep:
    """Train with one of STAGES and its options; the units of stage 3 are the blocks.

    master: compute in bfloat16 with float32 master weights.
    """
    model = setting.model(torch.float32 if master else None)
    options |= {"compute_dtype": torch.bfloat16} if master else {}
    options |= {"units": list(model.blocks)} if name == "ZeRO-3" else {}
    return TrainingStep(
        setting, model, STAGES[name](model, torch.optim.AdamW, group=group, **setting.adamw_options, **options)
    )


def zero_redundancy(setting: Setting, group: Any = None, **options: Any) -> TrainingStep:
    """Train with PyTorch's stage 1: DistributedDataParallel with `options`, and ZeroRedundancyOptimizer."""
    model = setting.model()
    ddp = _wrapped(model, setting, group, options)
    optimizer = ZeroRedundancyOptimizer(
        model.parameters(), torch.optim.AdamW, process_group=group, parameters_as_bucket_view=True,
        **setting.adamw_options,
    )  # fmt: skip
    return TrainingStep(setting, model, optimizer, wrapped=ddp, theirs=True)


def fully_sharded(
    setting: Setting,
    reshard_after_forward: bool = True,
    master: bool = False,
    offload: bool = False,
    prefetch: int = 0,
) -> TrainingStep:
    """Train with PyTorch's stage 3: fully_shard on each block and on the model.

    master: as in `zero`. With it, gradients are reduced in bfloat16 too. offload: keep the
    parameters in the CPU's memory. prefetch: the number of blocks to gather ahead in both passes; 0 uses PyTorch's
    default, one block ahead in backward.

    Parameters outside the blocks stay gathered for the whole step, as PyTorch advises, because backward starts with
    them.
    """
    model: Any = setting.model(torch.float32 if master else None)
    bfloat16 = torch.bfloat16 if master else None
    options: dict[str, Any] = {
        "mesh": init_device_mesh(setting.device.type, (dist.get_world_size(),)),  # the default prefers GPUs
        "mp_policy": MixedPrecisionPolicy(param_dtype=bfloat16, reduce_dtype=bfloat16),
        "offload_policy": CPUOffloadPolicy() if offload else OffloadPolicy(),
    }
    blocks = list(model.blocks)
    for block in blocks:
        fully_shard(block, reshard_after_forward=reshard_after_forward, **options)
    fully_shard(model, reshard_after_forward=None, **options)
    for number, block in enumerate(blocks) if prefetch else ():
        block.set_modules_to_forward_prefetch(blocks[number + 1 : number + 1 + prefetch])
        block.set_modules_to_backward_prefetch(blocks[max(0, number - prefetch) : number][::-1])
    return TrainingStep(setting, model, setting.adamw(model.parameters()), theirs=True)
