"""The base class of wrappers that start communication during the backward pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic

from torch import nn

from labs_helpers.communication.arrivals import Arrivals, B
from labs_helpers.communication.interface import Request
from labs_helpers.communication.weak_hooks import WeakHook
from labs_helpers.data_parallel.ddp.base import DDP


class HookedDDP(DDP, Generic[B]):
    """Send buckets of gradients during the backward pass, in bucket order.

    Subclasses define `make_buckets`, which lists the buckets in their order, and `send`, which starts a bucket's
    collectives. Until `remove()`, every backward pass on the module starts communication, so every rank has to run it
    and then call `finish()`. A bucket is sent when it and all earlier buckets are complete (see `Arrivals`); `finish()`
    sends the buckets with unused parameters.
    """

    def __init__(self, module: nn.Module, group: Any = None, **options: Any) -> None:
        super().__init__(module, group, **options)
        self.buckets = self.make_buckets()
        self.numbers = {bucket: number for number, bucket in enumerate(self.buckets)}
        self.arrivals = Arrivals(self.buckets, WeakHook(self.send), poll=self.group.polled)

    def make_buckets(self) -> Sequence[B]:
        raise NotImplementedError

    def send(self, bucket: B) -> Iterator[Request]:
        raise NotImplementedError

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Return a context in which backward adds to this rank's gradients without sending; `finish()` does nothing."""
        with super().no_sync(), self.arrivals.paused():
            yield

    def _finish(self) -> None:
        for _ in self.arrivals.finish():
            pass

    def finished(self) -> Iterator[int]:
        """Finish the step like `finish()`, and yield each bucket's number when its gradients hold the mean.

        With one optimizer per bucket, the update of one bucket hides messages that arrive after backward:

            optimizers = [AdamW(bucket.parameters) for bucket in ddp.buckets]
            for number in ddp.finished():
                optimizers[number].step()

        Consume the whole iterator. In `no_sync()` it is empty. A parameter that no rank has used gets a gradient of
        zeros, even with find_unused_parameters=True.
        """
        if self.sending:
            for bucket in self.arrivals.finish():
                yield self.numbers[bucket]

    def remove(self) -> None:
        """Stop averaging the module's gradients; call this before you wrap the module again."""
        super().remove()
        self.arrivals.remove()
