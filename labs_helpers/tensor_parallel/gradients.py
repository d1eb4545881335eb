"""The mean of all data-parallel ranks' gradients, bucket by bucket, while the backward pass still runs.

Li et al., PyTorch Distributed, 2020: gradients arrive from the last layer to the first, so buckets are filled in that
order, and one that is full is summed by a non-blocking all-reduce as the layers before it are still at work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial

from torch import nn

from labs_helpers.tensor_parallel.communication import Communication, Request

MEGABYTE = 2**20


class Bucket:
    """Parameters whose gradients lie one behind the other in one tensor, `buffer`, and travel together."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        self.parameters = parameters
        sizes = [p.numel() for p in parameters]
        self.buffer = parameters[0].detach().new_zeros(sum(sizes))
        self.views = [part.view_as(p) for part, p in zip(self.buffer.split(sizes), parameters, strict=True)]
        self.reset()

    def reset(self) -> None:
        self.arrived: set[int] = set()
        self.request: Request | None = None

    def take(self, parameter: nn.Parameter, place: int) -> None:
        """The gradient moves into the buffer; where `zero_grad(set_to_none=False)` leaves it there, nothing is copied.
        A parameter that this rank did not use has 0."""
        view = self.views[place]
        if parameter.grad is None:
            view.zero_()
        elif parameter.grad.data_ptr() != view.data_ptr():
            view.copy_(parameter.grad)
        parameter.grad = view
        self.arrived.add(place)

    @property
    def full(self) -> bool:
        return len(self.arrived) == len(self.parameters)


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
        bucket_bytes: int = 25 * MEGABYTE,
        overlap: bool = True,
    ) -> None:
        self.group, self.overlap, self.sending = group, overlap, True
        trained = list(dict.fromkeys(p for p in parameters if p.requires_grad))  # each once
        self.buckets = [Bucket(some) for some in fill_buckets(trained[::-1], bucket_bytes)]
        self.started = 0  # buckets are sent in their order, the same on all ranks
        self.hooks = [
            p.register_post_accumulate_grad_hook(partial(self._arrived, bucket, place))
            for bucket in self.buckets
            for place, p in enumerate(bucket.parameters)
        ]

    def _arrived(self, bucket: Bucket, place: int, parameter: nn.Parameter) -> None:
        if not self.sending:
            return
        if place in bucket.arrived:
            raise RuntimeError("a gradient arrived twice: finish() each step, and accumulate() all passes but the last")
        bucket.take(parameter, place)
        for earlier in self.buckets[: self.started]:
            if earlier.request is not None:
                earlier.request.poll()  # MPI goes on with a message only while it is called
        if self.overlap:
            self._start_full_ones()

    def _start_full_ones(self) -> None:
        while self.started < len(self.buckets) and self.buckets[self.started].full:
            bucket = self.buckets[self.started]
            bucket.request = self.group.start_all_reduce(bucket.buffer)
            self.started += 1

    @contextmanager
    def accumulate(self) -> Iterator[None]:
        """Within it, gradients add up on this rank and are not sent."""
        self.sending = False
        try:
            yield
        finally:
            self.sending = True

    def finish(self) -> None:
        """Waits until every parameter's grad is the mean. Gradients that this rank did not have count as 0.

        RuntimeError if no gradient has arrived since the last time.
        """
        if not any(bucket.arrived for bucket in self.buckets):
            raise RuntimeError("no gradient has arrived: finish() comes after backward(), once")
        for bucket in self.buckets:
            for place, parameter in enumerate(bucket.parameters):
                if place not in bucket.arrived:
                    bucket.take(parameter, place)
        self._start_full_ones()
        for bucket in self.buckets:
            assert bucket.request is not None
            bucket.request.wait()
            bucket.buffer.div_(self.group.size)
            bucket.reset()
        self.started = 0

    def remove(self) -> None:
        """Gradients are left alone from here on."""
        for hook in self.hooks:
            hook.remove()


def fill_buckets(parameters: list[nn.Parameter], bucket_bytes: int) -> list[list[nn.Parameter]]:
    """The parameters in their order, as many together as `bucket_bytes` hold (one, if it is larger), each bucket of one
    dtype and device."""
    buckets: list[list[nn.Parameter]] = []
    room = 0
    for p in parameters:
        last = buckets[-1][-1] if buckets else None
        if last is None or p.nbytes > room or (p.dtype, p.device) != (last.dtype, last.device):
            buckets.append([])
            room = bucket_bytes
        buckets[-1].append(p)
        room -= p.nbytes
    return buckets
