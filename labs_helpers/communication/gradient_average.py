"""The mean of all data-parallel ranks' gradients, bucket by bucket, while the backward pass still runs; over any
`Communication`. (`data_parallel` has the same for torch.distributed, as wrappers of a module.)"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager

from torch import nn

from labs_helpers.communication.arrivals import Arrivals
from labs_helpers.communication.buckets import BUCKET_MB, MEGABYTE, FlatBucket, fill_buckets, trained_parameters
from labs_helpers.communication.interface import Communication, Request
from labs_helpers.communication.weak_hooks import WeakHook

__all__ = ["MEGABYTE", "GradientAverage"]


class GradientAverage:
    """Averages the gradients of `parameters` over `group`, the data-parallel ranks: after `backward()` call `finish()`.

        gradients = GradientAverage(model.parameters(), group)
        loss.backward(); gradients.finish(); optimizer.step()

    A parameter that is used several times, as a tied weight, arrives once, with its whole gradient. Where several
    backward passes add up to a step, all but the last stand in `with gradients.accumulate():`. bucket_bytes: the most
    that a bucket holds. overlap=False begins with the first all-reduce in `finish()`, to compare.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        group: Communication,
        bucket_bytes: float = BUCKET_MB * MEGABYTE,
        overlap: bool = True,
    ) -> None:
        self.group = group
        self.buckets = [FlatBucket(some) for some in fill_buckets(trained_parameters(parameters)[::-1], bucket_bytes)]
        self.arrivals = Arrivals(self.buckets, WeakHook(self._send), overlap, poll=group.polled)

    def _send(self, bucket: FlatBucket) -> Iterator[Request]:
        yield self.group.start_mean(*bucket.gather())

    @property
    def started(self) -> int:
        """How many buckets are under way."""
        return self.arrivals.started

    def accumulate(self) -> AbstractContextManager[None]:
        """Within it, gradients add up on this rank and are not sent."""
        return self.arrivals.paused()

    def finish(self) -> None:
        """Waits until every parameter's grad is the mean. Gradients that this rank did not have count as 0.

        RuntimeError if no gradient has arrived since the last time.
        """
        if not any(bucket.arrived for bucket in self.buckets):
            raise RuntimeError("no gradient has arrived: finish() comes after backward(), once")
        for _ in self.arrivals.finish():
            pass

    def remove(self) -> None:
        """Gradients are left alone from here on."""
        self.arrivals.remove()
