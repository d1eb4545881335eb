"""Collectives on PyTorch tensors behind one interface, over MPI, the course's own collectives or torch.distributed.

`connect(way, comm)` chooses. This module holds what the three share: shapes, the dimension to split or join, and
counting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from numbers import Integral
from typing import Any, Protocol

import torch
from torch import Tensor

WAYS = ("mpi", "own", "torch")
OPS = ("sum", "max")


class Request(Protocol):
    """A collective or a message under way. Leave its tensor alone until wait() has returned."""

    def wait(self) -> None: ...

    def poll(self) -> bool:
        """Return True if it is done. MPI makes progress during the call."""
        ...


class Communication(ABC):
    """A group of ranks, which call its collectives in the same order. Results are new and contiguous, on x's device.

    calls, payload: how often each operation was called, and the bytes of its whole tensors (the gathered one, the one
    that is scattered), by "all_reduce", "all_gather", "reduce_scatter", "broadcast" and "send". bytes_sent,
    messages_sent: what this rank sent. The course's own collectives count their messages; the others report what the
    ring would send (`ring_bytes`, `ring_messages`), since a library's messages are invisible. A group of one sends and
    counts nothing.
    """

    rank: int
    size: int
    device = torch.device("cpu")  # the device of tensors that are created only to be sent
    polled = True  # makes progress only during calls, as MPI does

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Restart the counts at 0."""
        self.calls: Counter[str] = Counter()
        self.payload: Counter[str] = Counter()

    @property
    def bytes_sent(self) -> int:
        return sum(ring_bytes(name, nbytes, self.size, self.rank) for name, nbytes in self.payload.items())

    @property
    def messages_sent(self) -> int:
        return sum(calls * ring_messages(name, self.size, self.rank) for name, calls in self.calls.items())

    def all_reduce(self, x: Tensor, op: str = "sum", in_place: bool = False) -> Tensor:
        """Return the sum (or op="max") of all ranks' x, of any shape. x is unchanged, or with in_place holds the
        result and must be contiguous. ValueError: op is not one of OPS."""
        if op not in OPS:
            raise ValueError(f"op is {op!r}, not one of {', '.join(OPS)}")
        x = _writable(x) if in_place else x.detach().contiguous()
        if self.size == 1:
            return x if in_place else x.clone()
        self._count("all_reduce", self._reduced_bytes(x))
        return self._all_reduce(x, op, in_place)

    def start_all_reduce(self, x: Tensor) -> Request:
        """Start to replace x, which is contiguous, by the sum of all ranks' x; `wait()` completes it."""
        x = _writable(x)
        if self.size == 1:
            return Done()
        self._count("all_reduce", self._reduced_bytes(x))
        return self._start_all_reduce(x)

    def start_mean(self, *tensors: Tensor) -> Request:
        """Start to replace each tensor by its mean over the ranks; `wait()` completes it. Tensors are contiguous and of
        one dtype.

        Numbers are divided before they are added, because a sum of valid float16 numbers may overflow.
        """
        tensors = tuple(_writable(x) for x in tensors)
        return Done() if self.size == 1 or not tensors else self._start_mean(tensors)

    def start_all_gather(self, x: Tensor) -> tuple[Tensor, Request]:
        """Start to gather all ranks' x, of the same shape everywhere; `wait()` completes the result (size,
        *x.shape)."""
        x = x.detach().contiguous()
        parts = x.new_empty(self.size, *x.shape)
        if self.size == 1:
            return parts.copy_(x), Done()
        self._count("all_gather", parts.nbytes)
        return parts, self._start_all_gather(x, parts)

    def all_gather(self, x: Tensor, dim: int = 0) -> Tensor:
        """Return all ranks' x joined along `dim`, in rank order. x has the same shape everywhere."""
        x = x.detach().contiguous()
        if self.size == 1:
            return x.clone()
        parts = x.new_empty(self.size, *x.shape)
        self._count("all_gather", parts.nbytes)
        self._all_gather(x, parts)
        dim %= x.ndim
        # (size, …, n, …) → (…, size · n, …): a copy, unless dim is 0 or the dimensions before it have length 1.
        return parts.movedim(0, dim).flatten(dim, dim + 1).contiguous()

    def reduce_scatter(self, x: Tensor, dim: int = 0) -> Tensor:
        """Return this rank's part along `dim` of the sum of all ranks' x. ValueError: size does not divide that
        dimension."""
        x, dim = x.detach(), dim % x.ndim
        if x.shape[dim] % self.size:
            raise ValueError(f"dimension {dim} of {tuple(x.shape)} cannot be cut into {self.size} equal parts")
        if self.size == 1:
            return x.clone(memory_format=torch.contiguous_format)
        parts = x.unflatten(dim, (self.size, -1)).movedim(dim, 0).contiguous()
        self._count("reduce_scatter", self._reduced_bytes(parts))
        return self._reduce_scatter(parts)

    def broadcast(self, x: Tensor, root: int = 0) -> None:
        """Copy rank root's x into every rank's x, which is contiguous."""
        x = _writable(x)
        if self.size > 1:
            self._count("broadcast", x.nbytes)
            self._broadcast(x, root)

    def start_send(self, x: Tensor, to: int) -> Request:
        """Start to send x to rank `to` of this group, which has to receive it. ValueError: `to` is not another
        rank's number. TypeError: `to` is not a number, or x is not a tensor."""
        self._check_other("to", to)
        _check_tensor("the message", x)
        x = x.detach().contiguous()
        self._count("send", x.nbytes)
        return self._start_send(x, to)

    def start_receive(self, x: Tensor, source: int) -> Request:
        """Start to receive a message of rank `source` into x, which is contiguous and has the shape and dtype of the
        message. Messages of one rank arrive in the order in which it sent them. Errors as for `start_send`."""
        self._check_other("source", source)
        _check_tensor("the tensor to fill", x)
        return self._start_receive(_writable(x), source)

    def send(self, x: Tensor, to: int) -> None:
        """Send x and wait. This may return only when rank `to` receives, so two ranks that both send first can hang."""
        self.start_send(x, to).wait()

    def receive(self, x: Tensor, source: int) -> None:
        """Wait for a message of rank `source` and store it in x."""
        self.start_receive(x, source).wait()

    def split(self, axes: Mapping[str, list[int]]) -> Mapping[str, Communication]:
        """Return this rank's groups along the axes of a `Mesh`. axes: name → the ranks of the group, this one among
        them. Every rank calls it with the same names in the same order. A group of one rank costs nothing."""
        from labs_helpers.communication.silent import SilentCommunication

        alone = SilentCommunication(0, 1)
        alone.device = self.device
        several = {name: ranks for name, ranks in axes.items() if len(ranks) > 1}
        made = self._split(several) if several else {}
        return {name: made.get(name, alone) for name in axes}

    def open_channels(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Let the messages of each (sender, receiver) in `pairs` travel without waiting for other messages.

        Every rank calls this with the same pairs in the same order. Only NCCL needs it: a group runs all its messages
        one after another, so two ranks that send to each other at the same time would wait for each other.
        """
        return

    def free(self) -> None:
        """Return the group to MPI. Every rank calls this after the last communication."""
        return  # the other ways hold nothing to free

    def part(self, x: Tensor, dim: int) -> Tensor:
        """Return this rank's part of x along `dim`, a view, without communication. ValueError as for reduce_scatter."""
        if x.shape[dim] % self.size:
            raise ValueError(f"dimension {dim} of {tuple(x.shape)} cannot be cut into {self.size} equal parts")
        return x.chunk(self.size, dim)[self.rank]

    def hide_from_compiler(self) -> None:
        """Make torch.compile end a graph before a collective of this group and start another after it.

        Otherwise it would recompile at every step, because the counts that it has seen change.
        """
        for name in ("all_reduce", "all_gather", "reduce_scatter"):
            setattr(self, name, torch.compiler.disable(getattr(self, name)))

    def _count(self, name: str, nbytes: int) -> None:
        self.calls[name] += 1
        self.payload[name] += nbytes

    def _check_other(self, name: str, rank: int) -> None:
        if not isinstance(rank, Integral):
            raise TypeError(f"{name} is a {type(rank).__name__}, not a rank")
        if not 0 <= rank < self.size or rank == self.rank:
            raise ValueError(f"{name} is {rank}, not another rank of a group of {self.size}; this is rank {self.rank}")

    def _reduced_bytes(self, x: Tensor) -> int:
        return x.nbytes

    def _start_mean(self, tensors: tuple[Tensor, ...]) -> Request:
        torch._foreach_mul_(tensors, 1 / self.size)
        return Together([self.start_all_reduce(x) for x in tensors])

    def _start_all_gather(self, x: Tensor, parts: Tensor) -> Request:
        self._all_gather(x, parts)
        return Done()

    @abstractmethod
    def _all_reduce(self, x: Tensor, op: str, in_place: bool) -> Tensor: ...

    @abstractmethod
    def _start_all_reduce(self, x: Tensor) -> Request: ...

    @abstractmethod
    def _all_gather(self, x: Tensor, parts: Tensor) -> None: ...

    @abstractmethod
    def _reduce_scatter(self, parts: Tensor) -> Tensor: ...

    @abstractmethod
    def _broadcast(self, x: Tensor, root: int) -> None: ...

    @abstractmethod
    def _start_send(self, x: Tensor, to: int) -> Request: ...

    @abstractmethod
    def _start_receive(self, x: Tensor, source: int) -> Request: ...

    @abstractmethod
    def _split(self, axes: Mapping[str, list[int]]) -> dict[str, Communication]: ...


def _check_tensor(name: str, x: Tensor) -> None:
    if not isinstance(x, Tensor):
        raise TypeError(f"{name} is a {type(x).__name__}, not a Tensor")


def _writable(x: Tensor) -> Tensor:
    if not x.is_contiguous():
        raise ValueError(f"x is written to, so it has to be contiguous; its strides are {x.stride()}")
    return x.detach()


class Done:
    """A request with nothing to wait for."""

    def wait(self) -> None: ...

    def poll(self) -> bool:
        return True


class Together:
    """Several requests as one."""

    def __init__(self, requests: list[Request]) -> None:
        self.requests = requests

    def wait(self) -> None:
        for request in self.requests:
            request.wait()

    def poll(self) -> bool:
        return all([request.poll() for request in self.requests])


def ring_bytes(name: str, nbytes: int, size: int, rank: int = 1) -> int:
    """Return the bytes that a rank sends around the ring, the fewest possible, for a tensor of `nbytes` (see
    `payload`). A broadcast passes from the root, taken to be rank 0, from rank to rank to the last."""
    if name == "broadcast":
        return nbytes * (rank < size - 1)
    if name == "send":
        return nbytes
    return {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}[name] * nbytes * (size - 1) // size


def ring_messages(name: str, size: int, rank: int = 1) -> int:
    """Return the messages that the ring algorithm sends per call and rank."""
    if name == "broadcast":
        return int(rank < size - 1)
    if name == "send":
        return 1
    return {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}[name] * (size - 1)


def connect(way: str, comm: Any, algorithm: str = "ring") -> Communication:
    """Return the ranks of `comm`, an MPI communicator, over one of WAYS:

        "mpi": the MPI library's collectives, on CPU tensors
        "own": the course's (`OwnCollectives`, with `algorithm`), on CPU tensors
        "torch": comm is a torch.distributed process group

    `Mesh` creates groups of some of the ranks. Every rank of comm calls this.
    """
    if way == "torch":
        from labs_helpers.communication.torch_distributed import TorchCommunication

        return TorchCommunication(comm)
    from labs_helpers.communication.mpi import MPICommunication, OwnCommunication
    from labs_helpers.communication.own_collectives import OwnCollectives

    if way not in WAYS:
        raise ValueError(f"way is {way!r}, not one of {', '.join(WAYS)}")
    return MPICommunication(comm) if way == "mpi" else OwnCommunication(OwnCollectives(comm, algorithm))
