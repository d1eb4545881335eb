"""Training steps of replicas: whatever keeps their gradients alike, over one backward pass or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from labs_helpers.communication.buckets import FlatBucket
from labs_helpers.communication.torch_distributed import TorchCommunication
from labs_helpers.data_parallel.ddp.base import DDP
from labs_helpers.data_parallel.ddp.bucketed import BucketedDDP
from labs_helpers.data_parallel.ddp.flat import FlatDDP
from labs_helpers.data_parallel.ddp.hook import CommunicationHook, average
from labs_helpers.data_parallel.ddp.naive import NaiveDDP
from labs_helpers.data_parallel.ddp.overlapped import OverlappedDDP
from labs_helpers.data_parallel.study.held import plain_bytes
from labs_helpers.data_parallel.study.task import Task
from labs_helpers.data_parallel.study.turns import ALONE

TORCH = "DistributedDataParallel"
WRAPPERS = (ALONE, "naive", "flat", "overlapped", "bucketed", TORCH)
EVERY, LAST = "every pass", "last pass"  # when gradients are averaged


class Replica:
    """A model of its own on each rank, wrapped; see `turns.Step`.

    wrapper: one of WRAPPERS. group: what our wrappers send over, by default a new TorchCommunication of the task's
    ranks. passes: backward passes per step, each over the same batch. sync: LAST, or EVERY, which ours do as textbooks
    do not: with a `finish()` after each pass. hook: of "bucketed".
    """

    def __init__(
        self,
        task: Task,
        wrapper: str,
        *,
        bucket_mb: float | None = None,
        passes: int = 1,
        sync: str = LAST,
        hook: CommunicationHook = average,
        group: TorchCommunication | None = None,
    ) -> None:
        self.setting, self.passes, self.sync = task.setting, passes, sync
        self.group = group or TorchCommunication(task.process_group)
        self.model = self.setting.model()
        size = bucket_mb or task.bucket_mb
        self.wrapped = wrap(self.model, wrapper, self.group, size, hook, task.device)
        self.optimizer = self.setting.adamw(self.model.parameters())
        self.loss = torch.zeros(())

    def phases(self) -> Iterator[tuple[str, Callable[[], object]]]:
        for number in range(1, self.passes + 1):
            waits = self.sync == LAST and number < self.passes
            yield "forward", partial(self._forward, waits)
            yield "backward", partial(self._backward, waits)
            if not waits:
                yield "finish", self.finish
        yield "update", self.update

    def _quiet(self, waits: bool) -> AbstractContextManager[object]:
        wrapped: Any = self.wrapped
        return wrapped.no_sync() if waits and isinstance(wrapped, DDP | DistributedDataParallel) else nullcontext()

    def _forward(self, waits: bool) -> None:
        with self._quiet(waits):
            self.scaled = self.setting.loss(self.wrapped)
        self.loss = self.scaled.detach()
        if self.passes > 1:
            self.scaled = self.scaled / self.passes

    def _backward(self, waits: bool) -> None:
        with self._quiet(waits):
            self.scaled.backward()
        del self.scaled

    def finish(self) -> None:
        if isinstance(self.wrapped, DDP):
            self.wrapped.finish()

    def update(self) -> None:
        self.optimizer.step()
        self.model.zero_grad()

    @property
    def bytes_sent(self) -> int | None:
        """Since it was made, by the ring; None of PyTorch's."""
        return None if isinstance(self.wrapped, DistributedDataParallel) else self.group.bytes_sent

    def held(self) -> dict[str, int]:
        """Bytes of `zero.memory.PARTS` on this rank; gradients with the buckets that they lie in."""
        buckets = getattr(self.wrapped, "buckets", ())
        buffers = [bucket.buffer for bucket in buckets if isinstance(bucket, FlatBucket)]
        return plain_bytes(self.model, self.optimizer, buffers)

    def remove(self) -> None:
        """Nobody listens to the model any longer."""
        if isinstance(self.wrapped, DDP):
            self.wrapped.remove()


def wrap(
    model: torch.nn.Module,
    wrapper: str,
    group: TorchCommunication,
    bucket_mb: float,
    hook: CommunicationHook,
    device: torch.device,
) -> torch.nn.Module:
    """The model with one of WRAPPERS around it. bucket_mb: of "bucketed" and TORCH, first bucket included."""
    if wrapper == ALONE:
        return model
    if wrapper == TORCH:
        devices = [device.index] if device.type == "cuda" else None
        return DistributedDataParallel(
            model, devices, process_group=group.group, bucket_cap_mb=bucket_mb, gradient_as_bucket_view=True
        )
    if wrapper == "bucketed":
        return BucketedDDP(model, group, bucket_mb=bucket_mb, first_bucket_mb=min(1.0, bucket_mb), hook=hook)
    return {"naive": NaiveDDP, "flat": FlatDDP, "overlapped": OverlappedDDP}[wrapper](model, group)
