"""Average all data-parallel ranks' gradients, bucket by bucket, while the backward pass still runs, over any
`Communication`.

(`data_parallel` does the same for torch.distributed, with wrappers around a module.)
"""

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

    A parameter that is used several times, such as a tied weight, arrives once, with its whole gradient. If a step
    accumulates several backward passes, run all but the last in `with gradients.accumulate():`. bucket_bytes: the limit
    of a bucket. overlap=False starts the first all-reduce only in `finish()`, for comparison.
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
        """Return how many buckets are under way."""
        return self.arrivals.started

    def accumulate(self) -> AbstractContextManager[None]:
        """Add up gradients on this rank, inside the block, without sending them."""
        return self.arrivals.paused()

    def start(self) -> None:
        """Start to average all buckets that are not under way, for gradients that no backward pass of autograd adds."""
        self.arrivals.start_all()

    def finish(self) -> None:
        """Wait until every parameter's grad is the mean. A gradient that this rank lacks counts as 0.

        RuntimeError if no gradient has arrived since the last call.
        """
        if not any(bucket.arrived for bucket in self.buckets):
            raise RuntimeError("no gradient has arrived: finish() comes after backward(), once")
        for _ in self.arrivals.finish():
            pass

    def remove(self) -> None:
        """Stop averaging: leave gradients alone from now on."""
        self.arrivals.remove()
