"""MPI on PyTorch's CPU tensors, through NumPy views of their memory, without copies that MPI does not need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from labs_helpers.communication.interface import Communication, Request

# float32 copies are added instead, and the result is rounded once. NumPy has no bfloat16; if an MPI library adds
# float16, which its standard does not ask for, it rounds after every addition.
HALF = (torch.bfloat16, torch.float16)


def view(x: Tensor) -> np.ndarray[Any, Any]:
    """Return the tensor's own memory as a flat NumPy array. TypeError for a tensor that is not on the CPU."""
    if x.device.type != "cpu":
        raise TypeError(f"MPI reads the memory of CPU tensors; this one is on {x.device}: use the way 'torch'")
    return x.detach().reshape(-1).numpy()


def bits(x: Tensor) -> np.ndarray[Any, Any]:
    """Return the same memory as bytes, for any dtype, since moving does not depend on the dtype."""
    return view(x.detach().reshape(-1).view(torch.uint8))


def addable(x: Tensor) -> Tensor:
    """Return x, or a float32 copy if its dtype is in HALF."""
    return x.float() if x.dtype in HALF else x


class MPICommunication(Communication):
    """A Communication over an mpi4py communicator, or an object with its methods."""

    def __init__(self, comm: Any) -> None:
        super().__init__()
        from mpi4py import MPI  # importing it starts MPI, which only this way needs

        self.comm = comm
        self.operations: dict[str, Any] = {"sum": MPI.SUM, "max": MPI.MAX}
        self.in_place: Any = MPI.IN_PLACE
        self.rank, self.size = comm.Get_rank(), comm.Get_size()

    def _reduced_bytes(self, x: Tensor) -> int:
        return x.nbytes * (2 if x.dtype in HALF else 1)

    def _all_reduce(self, x: Tensor, op: str, in_place: bool) -> Tensor:
        send = addable(x)
        result = send if in_place else torch.empty_like(send)
        self.comm.Allreduce(self.in_place if in_place else view(send), view(result), self.operations[op])
        if not in_place:
            return result.to(x.dtype)
        return x if result is x else x.copy_(result)

    def _start_all_reduce(self, x: Tensor) -> Request:
        wide = addable(x)
        return _Started(self.comm.Iallreduce(self.in_place, view(wide), self.operations["sum"]), wide, x)

    def _all_gather(self, x: Tensor, parts: Tensor) -> None:
        self.comm.Allgather(bits(x), bits(parts))

    def _reduce_scatter(self, parts: Tensor) -> Tensor:
        send = addable(parts)
        mine = torch.empty_like(send[0])
        self.comm.Reduce_scatter_block(view(send), view(mine), self.operations["sum"])
        return mine.to(parts.dtype)

    def _broadcast(self, x: Tensor, root: int) -> None:
        self.comm.Bcast(bits(x), root)

    def _start_send(self, x: Tensor, to: int) -> Request:
        return _Started(self.comm.Isend(bits(x), to), x, x)

    def _start_receive(self, x: Tensor, source: int) -> Request:
        return _Started(self.comm.Irecv(bits(x), source), x, x)

    def _split(self, axes: Mapping[str, list[int]]) -> dict[str, Communication]:
        keys = {name: ranks.index(self.rank) for name, ranks in axes.items()}
        return {name: type(self)(self.comm.Split(color=axes[name][0], key=key)) for name, key in keys.items()}

    def free(self) -> None:
        self.comm.Free()


class OwnCommunication(MPICommunication):
    """A Communication over `OwnCollectives`; bytes and messages are the ones actually sent."""

    def reset(self) -> None:
        super().reset()
        self._before = (self.comm.bytes_sent, self.comm.messages_sent) if hasattr(self, "comm") else (0, 0)

    @property
    def bytes_sent(self) -> int:
        return int(self.comm.bytes_sent - self._before[0])

    @property
    def messages_sent(self) -> int:
        return int(self.comm.messages_sent - self._before[1])


class _Started:
    def __init__(self, request: Any, wide: Tensor, x: Tensor) -> None:
        self.request, self.wide, self.x = request, wide, x  # MPI writes to `wide`, which has to stay alive until then

    def poll(self) -> bool:
        return bool(self.request.Test())

    def wait(self) -> None:
        self.request.Wait()
        if self.wide is not self.x:
            self.x.copy_(self.wide)
