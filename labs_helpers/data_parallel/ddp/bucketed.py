"""Average gradients with one asynchronous all-reduce per bucket, started when the bucket is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from labs_helpers.communication.buckets import BUCKET_MB, MEGABYTE, FlatBucket, fill_buckets
from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.ddp.hook import CommunicationHook, average, name_of, send
from labs_helpers.data_parallel.ddp.hooked import HookedDDP


class BucketedDDP(HookedDDP[FlatBucket]):
    """Send gradients in a few large messages during the backward pass, like DistributedDataParallel.

    bucket_mb: the largest size of a bucket in MB (2²⁰ bytes); a larger parameter is alone in its bucket. Buckets are
    filled in the reverse order of the parameters, as their gradients arrive. first_bucket_mb: the limit of the first
    bucket, which is small so that the network starts early. Backward cannot hide the last bucket, which holds the first
    parameters and also a tied embedding, whose gradient is complete at the very end.

    The gradients are views into the buckets. Buckets persist between steps, and take as much memory as the gradients.
    One kernel per bucket copies the gradients into it; after `zero_grad(set_to_none=False)`, no copy is needed.

    hook: a `CommunicationHook` that replaces the plain mean, see `compression`.
    """

    def __init__(
        self,
        module: nn.Module,
        group: Any = None,
        *,
        bucket_mb: float = BUCKET_MB,
        first_bucket_mb: float = 1.0,
        hook: CommunicationHook = average,
        **options: Any,
    ) -> None:
        self.bucket_mb, self.first_bucket_mb, self.hook = bucket_mb, first_bucket_mb, hook
        settings = f"bucket_mb={bucket_mb}, first_bucket_mb={first_bucket_mb}, hook={name_of(hook)}"
        super().__init__(module, group, settings=settings, **options)

    def make_buckets(self) -> list[FlatBucket]:
        limits = (self.bucket_mb * MEGABYTE, self.first_bucket_mb * MEGABYTE)
        return [FlatBucket(some) for some in fill_buckets(self.trained[::-1], *limits)]

    def send(self, bucket: FlatBucket) -> Iterator[Request]:
        return send(bucket, self.hook, self.group)
