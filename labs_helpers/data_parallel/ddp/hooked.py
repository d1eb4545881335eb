"""The wrappers whose communication begins during backward."""

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
    """`make_buckets` says what travels together and in which order, `send` how.

    While the wrapper lives, until `remove()`, a backward pass on the module starts communication: every rank has to
    make it, and `finish()` after it. A bucket goes when it and all buckets before it are complete (see `Arrivals`);
    what a rank has not used goes in `finish()`.
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
        """Within it, backward passes add to this rank's gradients and send nothing, and `finish()` does nothing."""
        with super().no_sync(), self.arrivals.paused():
            yield

    def _finish(self) -> None:
        for _ in self.arrivals.finish():
            pass

    def finished(self) -> Iterator[int]:
        """In place of `finish()`: the number of each of `buckets` as its gradients become the mean. With an optimizer
        per bucket, the update of one hides the last messages of the next, which backward can no longer hide:

            optimizers = [AdamW(bucket.parameters) for bucket in ddp.buckets]
            for number in ddp.finished():
                optimizers[number].step()

        All are to be taken. Within `no_sync()` there are none. A parameter that no rank has used has zeros, whatever
        find_unused_parameters says.
        """
        if self.sending:
            for bucket in self.arrivals.finish():
                yield self.numbers[bucket]

    def remove(self) -> None:
        """Leaves the module's gradients alone from here on: before it is wrapped again."""
        super().remove()
        self.arrivals.remove()
