"""An asynchronous all-reduce for each gradient as soon as it is ready, from where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from labs_helpers.communication.buckets import MEGABYTE, Bucket, fill_buckets
from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.ddp.hooked import HookedDDP


class OverlappedDDP(HookedDDP[Bucket]):
    """Backward of the layers before hides the all-reduce. Nothing is copied, and no memory is kept between steps.

    coalesce_mb: gradients of up to so many MB (2²⁰ bytes) are one call. NCCL then sends them by one kernel, from where
    they lie, so that small ones share the latency, as in buckets but without copying; gloo copies them together itself.
    0: a call per gradient.
    """

    def __init__(self, module: nn.Module, group: Any = None, *, coalesce_mb: float = 0.0, **options: Any) -> None:
        self.coalesce_mb = coalesce_mb
        super().__init__(module, group, settings=f"coalesce_mb={coalesce_mb}", **options)

    def make_buckets(self) -> list[Bucket]:
        return [Bucket(some) for some in fill_buckets(self.trained[::-1], self.coalesce_mb * MEGABYTE)]

    def send(self, bucket: Bucket) -> Iterator[Request]:
        yield self.group.start_mean(*bucket.gather())
