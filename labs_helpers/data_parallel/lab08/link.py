"""A simulated link between processes of this machine: a message of n bytes takes at least α + nβ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from time import perf_counter, sleep
from typing import Any, cast

import torch.distributed as dist
from torch import Tensor

Note = tuple[float, float, int]  # a message's start and end in seconds of perf_counter, and its bytes


class Link(dist.ProcessGroup):  # type: ignore[misc, name-defined]
    """A process group that delays gloo's all-reduces to the speed of a link.

    gloo computes each result through shared memory. The group holds the result back until a link that needs no
    processor time, like a network card's, would have delivered it; messages follow one another. A rank therefore waits
    as long as with such a link, and can compute in the meantime.
    """

    def over(self, carrier: Any, alpha: float, beta: float) -> Link:
        """Set the carrier and the cost; return this group.

        carrier: gloo's group of the same ranks. alpha: seconds per message. beta: seconds per byte. If both are 0, gloo
        sets the speed.
        """
        self.carrier, self.alpha, self.beta = carrier, alpha, beta
        self.free, self.messages = 0.0, list[_Message]()
        return self

    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> _Message:
        start, nbytes = max(self.free, perf_counter()), sum(x.nbytes for x in tensors)
        self.free = start + self.alpha + self.beta * nbytes
        work = self.carrier.allreduce(tensors, opts or dist.AllreduceOptions())
        self.messages.append(_Message(work, start, self.free, nbytes))
        return self.messages[-1]

    def taken(self) -> list[Note]:
        """Return the notes of the messages so far, and clear them."""
        found, self.messages = [one.note() for one in self.messages], []
        return found


class _Message(dist.Work):
    def __init__(self, work: Any, start: float, due: float, nbytes: int) -> None:
        super().__init__()
        self.work, self.start, self.due, self.nbytes = work, start, due, nbytes
        self.arrived = work.get_future().then(lambda _: perf_counter())

    def wait(self, timeout: Any = None) -> bool:
        self.work.wait()
        self._await_due()
        return True

    def is_completed(self) -> bool:
        return bool(self.work.is_completed()) and perf_counter() >= self.due

    def get_future(self) -> Any:
        def held_back(done: Any) -> Any:  # runs in the thread that completes the work, so it cannot wait for the work
            self._await_due()
            return done.value()

        return self.work.get_future().then(held_back)

    def _await_due(self) -> None:
        sleep(max(0.0, self.due - perf_counter()))

    def note(self) -> Note:
        return self.start, max(self.due, self.arrived.wait()), self.nbytes


def _make(store: Any, rank: int, size: int, timeout: Any) -> Link:
    return Link(rank, size)


dist.Backend.register_backend("link", _make, devices=["cpu"])


@cache
def the_link() -> Link:
    """Return the `Link` between all ranks, at first without a delay. Every rank calls this; later calls return it."""
    return cast(Link, dist.new_group(backend="link")).over(dist.new_group(backend="gloo"), 0.0, 0.0)
