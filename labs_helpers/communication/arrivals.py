"""Start communication while backward still runs: a bucket is sent when its last gradient has arrived.

Li et al., PyTorch Distributed, 2020. Gradients arrive from the last layer to the first, so buckets are in that order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, TypeVar

from torch import nn

from labs_helpers.communication.buckets import Bucket
from labs_helpers.communication.interface import Done, Request
from labs_helpers.communication.weak_hooks import check_unhooked, hook_gradient

B = TypeVar("B", bound=Bucket)


class Arrivals(Generic[B]):
    """Listens to the gradients of `buckets` and starts `send(bucket)` for each bucket that is full.

    send: a generator that starts a collective and yields its request, as often as necessary; it resumes when the
    request is done. When it ends, the gradients are the mean.

    Buckets start only in order; a full bucket waits for the ones before it. If ranks called collectives in different
    orders, they would add one layer's gradients to another's, and a parameter that only one rank uses would be enough
    to cause that. overlap=False starts nothing before `finish()`. poll: ask the requests under way at each arrival, for
    an MPI that makes progress only during calls; gloo and NCCL use their own threads and streams. RuntimeError for
    parameters that another wrapper listens to, because their gradients would be divided twice.
    """

    def __init__(
        self, buckets: Sequence[B], send: Callable[[B], Iterator[Request]], overlap: bool = True, poll: bool = False
    ) -> None:
        self.buckets, self.send, self.overlap, self.poll = buckets, send, overlap, poll
        self.sending = True
        self.under_way: list[tuple[B, Iterator[Request], Request]] = []
        for bucket in buckets:
            check_unhooked(bucket.parameters)
        self.hooks = [
            hook_gradient(p, self._arrived, number, place)
            for number, bucket in enumerate(buckets)
            for place, p in enumerate(bucket.parameters)
        ]

    @property
    def started(self) -> int:
        """Return how many buckets are under way."""
        return len(self.under_way)

    def _arrived(self, number: int, place: int, parameter: nn.Parameter) -> None:
        # Called for every parameter in every step, while the accelerator may be waiting for a kernel. So do no more
        # than this, and never wait for the accelerator.
        if not self.sending:
            return
        bucket = self.buckets[number]
        if place in bucket.arrived:
            raise RuntimeError(
                "a gradient arrived twice: finish() each step, and all backward passes of a step but the last "
                "within no_sync() (GradientAverage: accumulate())"
            )
        bucket.arrived.add(place)
        if self.poll:
            for _, _, request in self.under_way:
                request.poll()
        if self.overlap and bucket.full:
            self._start_full_ones()

    def _start_full_ones(self) -> None:
        while self.started < len(self.buckets) and self.buckets[self.started].full:
            bucket = self.buckets[self.started]
            steps = self.send(bucket)
            self.under_way.append((bucket, steps, next(steps, Done())))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Add up gradients inside the block without sending them."""
        before, self.sending = self.sending, False
        try:
            yield
        finally:
            self.sending = before

    def start_all(self) -> None:
        """Start every bucket that is not under way yet, with the gradients as they are."""
        for bucket in self.buckets:
            bucket.arrived.update(range(len(bucket.parameters)))
        self._start_full_ones()

    def finish(self) -> Iterator[B]:
        """Yield each bucket when its gradients have become the mean; the caller has to take all. On a GPU only the
        current stream waits: work queued after a bucket was yielded runs when its mean is ready."""
        self.start_all()
        under_way, self.under_way = self.under_way, []
        for bucket in self.buckets:
            bucket.arrived.clear()
        while under_way:
            further = []
            for bucket, steps, request in under_way:
                request.wait()
                following = next(steps, None)
                if following is None:
                    yield bucket
                else:  # started after the first step of all buckets: one order on all ranks
                    further.append((bucket, steps, following))
            under_way = further

    def remove(self) -> None:
        """Stop listening: leave gradients alone from now on."""
        for hook in self.hooks:
            hook.remove()
