"""An asynchronous all-reduce per bucket of gradients, as soon as the bucket is full."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from labs_helpers.communication.buckets import BUCKET_MB, MEGABYTE, FlatBucket, fill_buckets
from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.ddp.hook import CommunicationHook, average, name_of, send
from labs_helpers.data_parallel.ddp.hooked import HookedDDP


class BucketedDDP(HookedDDP[FlatBucket]):
    """Few large messages that backward still hides: what DistributedDataParallel does.

    bucket_mb: the most that a bucket holds, in MB (2²⁰ bytes); a larger parameter is alone in one. Buckets are filled
    in reverse order of the parameters, as gradients arrive. first_bucket_mb: the first one's, small, so that the
    network starts early. What backward cannot hide is the last bucket, which the first parameters share; a tied
    embedding is among them, since its gradient is complete at the very end.

    The gradients are views into the buckets, which stay between steps: as much memory as the gradients. Backward makes
    the gradients, and one kernel per bucket moves them in. After `zero_grad(set_to_none=False)` none is moved.

    hook: the `CommunicationHook` in place of the mean, for `compression`.
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
