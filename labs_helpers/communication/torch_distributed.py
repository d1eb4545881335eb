"""torch.distributed: gloo on CPUs, NCCL on GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh

from labs_helpers.communication.interface import Communication, Request
from labs_helpers.launch.world import with_messages
from labs_helpers.measure.machine import has_gpu

# PyTorch 2.13 has new names for them.
_all_gather = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
_reduce_scatter = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)


class TorchCommunication(Communication):
    """A Communication over a process group that this rank belongs to.

    In code compiled by torch.compile, all-reduces are part of the graph and are not counted. NCCL delivers messages in
    order, so of two ranks that exchange messages, one has to start its send first and the other its receive.
    """

    polled = False  # gloo and NCCL use their own threads and streams

    def __init__(self, group: Any) -> None:
        super().__init__()
        self.group = group
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)
        self.name: str = group.group_name  # the name by which the compiler's graphs find it
        self.nccl = dist.get_backend(group) == "nccl"
        self.channels: dict[tuple[int, int], Any] = {}  # (sender, receiver) → the group of its messages
        if self.nccl:
            self.device = torch.device("cuda", torch.cuda.current_device())

    def all_reduce(self, x: Tensor, op: str = "sum", in_place: bool = False) -> Tensor:
        if self.size > 1 and torch.compiler.is_compiling() and not in_place:
            # PyTorch's functional collective returns a new tensor; inductor makes it write in place if that is safe.
            started = torch.ops._c10d_functional.all_reduce(x.contiguous(), op, self.name)
            return cast(Tensor, torch.ops._c10d_functional.wait_tensor(started))
        return super().all_reduce(x, op, in_place)

    # Graphs with these two gave wrong gradients on the GPUs that we tried, so they stay outside.
    all_gather = torch.compiler.disable(Communication.all_gather)
    reduce_scatter = torch.compiler.disable(Communication.reduce_scatter)

    def hide_from_compiler(self) -> None:
        pass

    def _all_reduce(self, x: Tensor, op: str, in_place: bool) -> Tensor:
        result = x if in_place else x.clone()
        dist.all_reduce(result, {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX}[op], self.group)
        return result

    def _start_all_reduce(self, x: Tensor) -> Request:
        return _Started(dist.all_reduce(x, group=self.group, async_op=True))

    def _start_mean(self, tensors: tuple[Tensor, ...]) -> Request:
        """Average several tensors in one call: NCCL sends them from where they are, with one kernel."""
        self._count("all_reduce", sum(x.nbytes for x in tensors))
        op: Any = dist.ReduceOp.AVG  # NCCL multiplies by 1 / size while it reads, without another pass over memory
        if not self.nccl:
            torch._foreach_mul_(tensors, 1 / self.size)  # gloo's AVG divides the sum, which may have overflowed
            op = dist.ReduceOp.SUM
        if len(tensors) == 1:
            return _Started(dist.all_reduce(tensors[0], op, self.group, async_op=True))
        options = dist.AllreduceCoalescedOptions()
        options.reduceOp = op
        return _Started(self.group.allreduce_coalesced(list(tensors), options))

    def _all_gather(self, x: Tensor, parts: Tensor) -> None:
        _all_gather(parts.flatten(), x.flatten(), group=self.group)

    def _start_all_gather(self, x: Tensor, parts: Tensor) -> Request:
        return _Started(_all_gather(parts.flatten(), x.flatten(), group=self.group, async_op=True))

    def _reduce_scatter(self, parts: Tensor) -> Tensor:
        mine = torch.empty_like(parts[0])
        _reduce_scatter(mine.flatten(), parts.flatten(), group=self.group)
        return mine

    def _broadcast(self, x: Tensor, root: int) -> None:
        dist.broadcast(x, group=self.group, group_src=root)

    def _start_send(self, x: Tensor, to: int) -> Request:
        return _Started(dist.isend(x, dist.get_global_rank(self.group, to), self._channel(self.rank, to)))

    def _start_receive(self, x: Tensor, source: int) -> Request:
        return _Started(dist.irecv(x, dist.get_global_rank(self.group, source), self._channel(source, self.rank)))

    def _channel(self, source: int, to: int) -> Any:
        if (source, to) not in self.channels:
            with_messages.add(self.name)
        return self.channels.get((source, to), self.group)

    def open_channels(self, pairs: Iterable[tuple[int, int]]) -> None:
        for pair in pairs if self.nccl else ():
            if self.rank in pair and pair not in self.channels:
                members = [dist.get_global_rank(self.group, rank) for rank in pair]
                self.channels[pair] = dist.new_group(members, use_local_synchronization=True)

    def _split(self, axes: Mapping[str, list[int]]) -> dict[str, Communication]:
        if self.size < dist.get_world_size():
            raise ValueError(f"a mesh has all {dist.get_world_size()} ranks of torch.distributed, not {self.size}")
        mesh = init_device_mesh(self.device.type, tuple(map(len, axes.values())), mesh_dim_names=tuple(axes))
        return {name: TorchCommunication(mesh.get_group(name)) for name in axes}


class _Started:
    def __init__(self, work: Any) -> None:
        self.work = work

    def poll(self) -> bool:
        return bool(self.work.is_completed())

    def wait(self) -> None:
        self.work.wait()


def start(comm: Any, backend: str, host: str = "127.0.0.1") -> None:
    """Call `init_process_group` for the ranks of an MPI communicator. host: rank 0's, if several machines take part."""
    rank, size = comm.Get_rank(), comm.Get_size()
    TCPStore: Any = dist.TCPStore  # type: ignore[attr-defined]
    store = TCPStore(host, 0, size, is_master=True, wait_for_workers=False) if rank == 0 else None
    port = comm.bcast(store.port if store else None)
    if store is None:
        store = TCPStore(host, port, size, is_master=False)
    dist.init_process_group(backend, store=store, rank=rank, world_size=size)


def gpu_per_rank(ranks: int) -> bool:
    """Return whether so many ranks each have a GPU on this machine; otherwise all of them run on its CPU."""
    return has_gpu() and torch.cuda.device_count() >= ranks


def join(comm: Any = None, on_gpus: bool | None = None) -> TorchCommunication:
    """Start torch.distributed on the ranks of an MPI communicator, by default all; return the group of all ranks.

    on_gpus: NCCL with one GPU per rank, or gloo with one CPU thread per rank; None uses GPUs if there are enough. Every
    rank calls this. If torch.distributed runs already, it stays as it is.
    """
    if comm is None:
        from mpi4py import MPI

        comm = MPI.COMM_WORLD
    if on_gpus is None:
        on_gpus = gpu_per_rank(comm.Get_size())
    if on_gpus:
        torch.cuda.set_device(comm.Get_rank())
    else:
        torch.set_num_threads(1)  # the ranks share the cores
    if not dist.is_initialized():
        start(comm, "nccl" if on_gpus else "gloo")
        if on_gpus:
            dist.barrier()  # NCCL connects the ranks at their first collective, which takes seconds
    return TorchCommunication(dist.group.WORLD)
