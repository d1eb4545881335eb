"""A stopwatch around any Communication: how long the ranks are inside their collectives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from time import perf_counter

from torch import Tensor

from labs_helpers.communication.interface import Communication, Request


class TimedCommunication(Communication):
    """`inner`, with `seconds`: the time inside its collectives since `reset()`, for messages, sums, and waiting for
    other ranks. Packing and unpacking tensors around them is left out. For started operations, the time in start,
    polls and wait counts."""

    def __init__(self, inner: Communication) -> None:
        self.inner, self.rank, self.size = inner, inner.rank, inner.size
        super().__init__()

    def reset(self) -> None:
        super().reset()
        self.inner.reset()
        self.intervals: list[tuple[float, float]] = []  # (start, stop) by perf_counter

    @property
    def seconds(self) -> float:
        return sum(stop - start for start, stop in self.intervals)

    @property
    def bytes_sent(self) -> int:
        return self.inner.bytes_sent

    @property
    def messages_sent(self) -> int:
        return self.inner.messages_sent

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the stopwatch inside the block."""
        start = perf_counter()
        try:
            yield
        finally:
            self.intervals.append((start, perf_counter()))

    def _count(self, name: str, nbytes: int) -> None:
        super()._count(name, nbytes)
        self.inner._count(name, nbytes)

    def _reduced_bytes(self, x: Tensor) -> int:
        return self.inner._reduced_bytes(x)

    def _all_reduce(self, x: Tensor, op: str, in_place: bool) -> Tensor:
        with self.running():
            return self.inner._all_reduce(x, op, in_place)

    def _start_all_reduce(self, x: Tensor) -> Request:
        with self.running():
            return _Timed(self.inner._start_all_reduce(x), self)

    def _all_gather(self, x: Tensor, parts: Tensor) -> None:
        with self.running():
            self.inner._all_gather(x, parts)

    def _reduce_scatter(self, parts: Tensor) -> Tensor:
        with self.running():
            return self.inner._reduce_scatter(parts)

    def _broadcast(self, x: Tensor, root: int) -> None:
        with self.running():
            self.inner._broadcast(x, root)

    def _start_send(self, x: Tensor, to: int) -> Request:
        with self.running():
            return _Timed(self.inner._start_send(x, to), self)

    def _start_receive(self, x: Tensor, source: int) -> Request:
        with self.running():
            return _Timed(self.inner._start_receive(x, source), self)

    def _split(self, axes: Mapping[str, list[int]]) -> dict[str, Communication]:
        return {name: TimedCommunication(group) for name, group in self.inner.split(axes).items()}

    split = _split  # a group of one also needs a stopwatch

    def open_channels(self, pairs: Iterable[tuple[int, int]]) -> None:
        self.inner.open_channels(pairs)

    def free(self) -> None:
        self.inner.free()


class _Timed:
    def __init__(self, request: Request, watch: TimedCommunication) -> None:
        self.request, self.watch = request, watch

    def poll(self) -> bool:
        with self.watch.running():
            return self.request.poll()

    def wait(self) -> None:
        with self.watch.running():
            self.request.wait()
