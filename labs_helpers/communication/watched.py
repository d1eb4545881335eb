"""A Communication over torch.distributed that notes how long each mean is under way."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from torch import Tensor

from labs_helpers.communication.interface import Request
from labs_helpers.communication.torch_distributed import TorchCommunication


class WatchedCommunication(TorchCommunication):
    """Notes when each mean over gloo starts and arrives, whether or not the rank waits for it in the meantime."""

    def __init__(self, group: Any) -> None:
        super().__init__(group)
        self.notes: list[tuple[float, float, int]] = []
        self.arriving: list[Any] = []

    def _start_mean(self, tensors: tuple[Tensor, ...]) -> Request:
        request = super()._start_mean(tensors)
        self.watch(request.work.get_future(), sum(x.nbytes for x in tensors))  # type: ignore[attr-defined]
        return request

    def watch(self, future: Any, nbytes: int) -> Any:
        """Note when the future of a message that starts now is done; return a future that is done by then."""
        start = perf_counter()

        def arrived(future: Any) -> Any:
            self.notes.append((start, perf_counter(), nbytes))
            return future.value()

        self.arriving.append(future.then(arrived))
        return self.arriving[-1]

    def taken(self) -> list[tuple[float, float, int]]:
        """Return (start, stop, bytes) of the messages so far, by perf_counter, and clear them."""
        for future in self.arriving:
            future.wait()
        found, self.notes, self.arriving = sorted(self.notes), [], []
        return found
