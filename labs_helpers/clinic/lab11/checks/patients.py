"""The jobs of exercise 8 of lab 11, which count what their methods read, keep and start."""

from __future__ import annotations

from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from labs_helpers.clinic.training import Training
from labs_helpers.communication.interface import Request
from labs_helpers.communication.practice import PracticeCommunication
from labs_helpers.communication.silent import SilentCommunication

READING = {
    "item", "tolist", "numpy", "__array__", "__float__", "__int__", "__bool__", "__index__", "__format__", "__repr__",
    "equal", "allclose",
}  # fmt: skip
MAKING = {"tensor", "as_tensor"}  # they read each tensor of a list


class Patient(Training):
    """A small job on one rank, with the lists that the exercise promises."""

    batch = 1

    def __init__(self) -> None:
        super().__init__(SilentCommunication(0, 1), seed=0)
        self.entropies: list[Any] = []
        self.curve: list[Any] = []
        self.pending: list[Any] = []


class Reads(TorchFunctionMode):
    """Counts the reads of a tensor's values inside the block, each of which would wait for a GPU.

    A copy on the host is one read, and whatever is computed from the copy alone is none.
    """

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.on_host: list[torch.Tensor] = []

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, given = getattr(function, "__name__", ""), tree_leaves((args, kwargs))
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        unread = [one for one in tensors if not self._is_on_host(one)]
        copies = name == "cpu" or (name == "to" and any(str(one) == "cpu" for one in given[1:]))
        makes = name in MAKING and not isinstance(args[0], torch.Tensor)
        with torch._C.DisableTorchFunction():  # item, called by __format__, is the same read
            result = function(*args, **(kwargs or {}))
            if copies:
                result = result.clone()  # here the host is the device, and cpu() returns the tensor itself
        self.count += len(unread) if makes else bool(unread) and (copies or name in READING)
        if tensors and (copies or makes or not unread):
            self.on_host += [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
        return result

    def _is_on_host(self, tensor: torch.Tensor) -> bool:
        return any(tensor.untyped_storage().data_ptr() == one.untyped_storage().data_ptr() for one in self.on_host)


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
