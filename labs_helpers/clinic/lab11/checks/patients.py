"""The jobs of exercise 8 of lab 11, which count what their methods read, keep and start."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from labs_helpers.clinic.training import Training
from labs_helpers.communication.interface import Request
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.communication.silent import SilentCommunication

READING = {"item", "tolist", "numpy", "cpu", "__float__", "__int__", "__bool__", "__index__", "__format__", "__repr__"}


class Patient(Training):
    """A small job on one rank, with the lists that the exercise promises."""

    batch = 1

    def __init__(self) -> None:
        super().__init__(SilentCommunication(0, 1), seed=0)
        self.entropies: list[Any] = []
        self.curve: list[Any] = []
        self.pending: list[Any] = []


class Reads(TorchFunctionMode):
    """Counts the calls inside the block that read a tensor's values."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += getattr(function, "__name__", "") in READING
        with torch._C.DisableTorchFunction():  # item, called by __format__, is the same read
            return function(*args, **(kwargs or {}))


class CountingGroup(PracticeCommunication):
    """Counts collectives, where a mean of several tensors is one, and means that nobody waits for."""

    def __init__(self, comm: Any) -> None:
        super().__init__(comm)
        self.started = self.unwaited = 0
        self.inside = False

    def start_mean(self, *tensors: torch.Tensor) -> Request:
        self.started, self.unwaited, self.inside = self.started + 1, self.unwaited + 1, True
        request = super().start_mean(*tensors)
        self.inside = False
        return _Waited(self, request)

    def _count(self, name: str, nbytes: int) -> None:
        super()._count(name, nbytes)
        self.started += not self.inside


class _Waited:
    def __init__(self, group: CountingGroup, request: Request) -> None:
        self.group, self.request = group, request

    def poll(self) -> bool:
        return self.request.poll()

    def wait(self) -> None:
        self.group.unwaited -= 1
        self.request.wait()
