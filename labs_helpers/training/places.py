"""Where each rank stands and works: its groups and its device; and what rank 0 does for all."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from labs_helpers.communication import Mesh, connect
from labs_helpers.launch.program import sentence
from labs_helpers.training.settings import Refused, Settings

Value = TypeVar("Value")


class Place(NamedTuple):
    """One rank's: the groups that it is in, and PyTorch's name of the device that it works on."""

    mesh: Mesh
    device: str
    starter: bool  # whether it has started torch.distributed, which it then ends


def on_this_machine(comm: Any) -> tuple[int, int]:
    """This rank's number among those that share memory with it, and how many they are. Called by every rank."""
    from mpi4py import MPI

    neighbours = comm.Split_type(MPI.COMM_TYPE_SHARED)
    rank, size = neighbours.Get_rank(), neighbours.Get_size()
    neighbours.Free()
    return rank, size


def take_place(comm: Any, settings: Settings) -> Place:
    """This rank's place in the mesh of `settings.axes`. Called by every rank of comm."""
    if settings.way != "torch":
        return Place(Mesh(connect(settings.way, comm), settings.axes), "cpu", False)
    import torch
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed

    local_rank, local_size = on_this_machine(comm)
    gpus = comm.allreduce(int(torch.cuda.device_count() >= local_size)) == comm.Get_size()
    device = f"cuda:{local_rank}" if gpus else "cpu"
    if gpus:
        torch.cuda.set_device(device)
    starter = not dist.is_initialized()
    if starter:
        host = "127.0.0.1" if local_size == comm.Get_size() else comm.bcast(os.uname().nodename)
        torch_distributed.start(comm, "nccl" if gpus else "gloo", host)
    return Place(Mesh(connect("torch", dist.group.WORLD), settings.axes), device, starter)


def leave(place: Place) -> None:
    """Ends what `take_place` has started; after the last communication."""
    if place.starter:
        import torch.distributed as dist

        dist.destroy_process_group()


def on_rank_0(comm: Any, function: Callable[[], Value]) -> Value:
    """What `function()` returns on rank 0, alone there, on every rank. Refused on every rank, if it raises that, or an
    error of files or memory."""
    answer = None
    if comm.Get_rank() == 0:
        try:
            answer = (function(), "")
        except (Refused, OSError, MemoryError) as error:
            answer = (None, sentence(error) or str(error))  # type: ignore[assignment]
    value, refusal = comm.bcast(answer)
    if refusal:
        raise Refused(refusal)
    return value
