"""Average all gradients with one all-reduce, after the backward pass."""

from __future__ import annotations

from typing import Any

from torch import nn

from labs_helpers.communication.buckets import FlatBucket, fill_buckets
from labs_helpers.data_parallel.ddp.base import DDP
from labs_helpers.data_parallel.ddp.hook import CommunicationHook, average, name_of, send


class FlatDDP(DDP):
    """Send all gradients in one message per dtype, which pays the latency once but overlaps nothing.

    The gradients become views into a buffer that is as large as all of them together. hook: see `BucketedDDP`.
    """

    def __init__(
        self, module: nn.Module, group: Any = None, *, hook: CommunicationHook = average, **options: Any
    ) -> None:
        super().__init__(module, group, settings=f"hook={name_of(hook)}", **options)
        self.hook = hook
        self.buckets = [FlatBucket(some) for some in fill_buckets(self.trained[::-1], float("inf"))]

    def _finish(self) -> None:
        for bucket in self.buckets:
            for request in send(bucket, self.hook, self.group):
                request.wait()
