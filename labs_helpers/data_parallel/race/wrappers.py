"""Candidates that keep everything on every rank: our wrappers, and DistributedDataParallel."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from labs_helpers.data_parallel.ddp.base import DDP
from labs_helpers.data_parallel.ddp.bucketed import BucketedDDP
from labs_helpers.data_parallel.ddp.flat import FlatDDP
from labs_helpers.data_parallel.ddp.naive import NaiveDDP
from labs_helpers.data_parallel.ddp.overlapped import OverlappedDDP
from labs_helpers.data_parallel.race.setting import Setting, Step, priority_group

OURS, THEIRS, ALONE = "ours", "PyTorch", "no synchronisation"
CLASSES: dict[str, type[DDP]] = {
    "NaiveDDP": NaiveDDP, "FlatDDP": FlatDDP, "OverlappedDDP": OverlappedDDP, "BucketedDDP": BucketedDDP,
}  # fmt: skip


def alone(setting: Setting) -> Step:
    """Every rank trains a model of its own: the floor."""
    model = setting.model()
    optimizer = setting.adamw(model.parameters())

    def step() -> torch.Tensor:
        loss = setting.loss(model)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step


def ours(
    setting: Setting, name: str, priority: bool = False, max_ctas: int | None = None, by_bucket: bool = False,
    **options: Any,
) -> Step:  # fmt: skip
    """priority, max_ctas: see `new_overlapping_group`. by_bucket: an optimizer per bucket, see `HookedDDP.finished`."""
    model = setting.model()
    ddp = CLASSES[name](model, priority_group(max_ctas) if priority else None, **options)
    parts = [bucket.parameters for bucket in ddp.buckets] if by_bucket else [list(model.parameters())]  # type: ignore
    optimizers = [setting.adamw(part) for part in parts]

    def step() -> torch.Tensor:
        loss = setting.loss(ddp)
        loss.backward()
        if by_bucket:
            for number in ddp.finished():  # type: ignore[operator]
                optimizers[number].step()
        else:
            ddp.finish()
            optimizers[0].step()
        model.zero_grad()
        return loss.detach()

    return step


def theirs(setting: Setting, priority: bool = False, max_ctas: int | None = None, **options: Any) -> Step:
    """DistributedDataParallel, with its `options`."""
    model = setting.model()
    group = priority_group(max_ctas) if priority else None
    devices = [setting.device.index] if setting.device.type == "cuda" else None
    ddp = DistributedDataParallel(model, devices, process_group=group, **options)
    optimizer = setting.adamw(model.parameters())

    def step() -> torch.Tensor:
        loss = setting.loss(ddp)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step
