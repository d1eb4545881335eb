"""Give each rank its groups and its device, and run functions on rank 0 for all ranks."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from labs_helpers.communication import Mesh, connect
from labs_helpers.launch.program import sentence
from labs_helpers.training.settings import Refused, Settings

Value = TypeVar("Value")


class Place(NamedTuple):
    """One rank's groups, and PyTorch's name of its device."""

    mesh: Mesh
    device: str
    starter: bool  # whether this rank started torch.distributed and has to end it


def on_this_machine(comm: Any) -> tuple[int, int]:
    """Return this rank's index on its machine and the number of ranks there; every rank calls this."""
    from mpi4py import MPI

    neighbors = comm.Split_type(MPI.COMM_TYPE_SHARED)
    rank, size = neighbors.Get_rank(), neighbors.Get_size()
    neighbors.Free()
    return rank, size


def take_place(comm: Any, settings: Settings) -> Place:
    """Return this rank's place in the mesh of `settings.axes`; every rank of comm calls this."""
    if settings.way != "torch":
        return Place(Mesh(connect(settings.way, comm), settings.axes), "cpu", False)
    import torch
    import torch.distributed as dist

    from labs_helpers.communication import torch_distributed
    from labs_helpers.training.torch_world import TorchWorld

    if isinstance(comm, TorchWorld):
        return Place(Mesh(connect("torch", dist.group.WORLD), settings.axes), comm.device, False)
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
    """End torch.distributed if `take_place` started it; call this after the last communication."""
    if place.starter:
        import torch.distributed as dist

        dist.destroy_process_group()


def on_rank_0(comm: Any, function: Callable[[], Value]) -> Value:
    """Call `function()` on rank 0 only, and return its result on every rank.

    Raises Refused on every rank if the function raises it, OSError or MemoryError.
    """
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
