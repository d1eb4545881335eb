"""Average gradients with asynchronous all-reduces, started when each gradient is ready, without copies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from labs_helpers.communication.buckets import MEGABYTE, Bucket, fill_buckets
from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.ddp.hooked import HookedDDP


class OverlappedDDP(HookedDDP[Bucket]):
    """Send each gradient in place while the backward pass continues; no memory is kept between steps.

    coalesce_mb: send gradients of up to this many MB (2²⁰ bytes) together in one call; 0 makes one call per gradient.
    NCCL sends the gradients of a call in one kernel without copying them, so small ones share the latency. gloo copies
    them into one buffer.
    """

    def __init__(self, module: nn.Module, group: Any = None, *, coalesce_mb: float = 0.0, **options: Any) -> None:
        self.coalesce_mb = coalesce_mb
        super().__init__(module, group, settings=f"coalesce_mb={coalesce_mb}", **options)

    def make_buckets(self) -> list[Bucket]:
        return [Bucket(some) for some in fill_buckets(self.trained[::-1], self.coalesce_mb * MEGABYTE)]

    def send(self, bucket: Bucket) -> Iterator[Request]:
        yield self.group.start_mean(*bucket.gather())
