"""The process of an answer: it executes the cells, and calls their function when the judge asks for it.

A `Nursery` is a process that has imported what answers need and executes none itself. It forks a process for each
answer.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import gc
import importlib
import inspect
import os
import resource
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import torch

from labs_helpers.course.own_memory import random_state
from labs_helpers.course.reached_tensors import tensors_reached
from labs_helpers.grading.far.memory import Memory, plain_memory
from labs_helpers.grading.far.wire import Wire
from labs_helpers.grading.jails.system_calls import keep_from_others
from labs_helpers.grading.jails.together import PR_SET_DUMPABLE, prctl
from labs_helpers.grading.judged import ANSWER, defined
from labs_helpers.launch.flavour import find_mpi
from labs_helpers.practice.request import Requests

HOOKS = frozenset(("register_post_accumulate_grad_hook", "register_hook"))
SIZES = frozenset(("resize_", "nbytes", "size"))
# The functions of torch.distributed that the judge calls on an answer's behalf.
DISTRIBUTED = frozenset(
    "all_gather all_gather_into_tensor all_gather_single all_reduce all_to_all_single barrier broadcast gather "
    "get_global_rank get_group_rank get_process_group_ranks get_rank get_world_size irecv is_initialized isend recv "
    "reduce reduce_scatter reduce_scatter_single reduce_scatter_tensor scatter send".split()
)


def keep_to_itself() -> None:
    """Prevent other processes of the same user from reading or writing this process's memory from now on."""
    prctl(PR_SET_DUMPABLE, 0)


class Nursery:
    """Forks the processes of answers. Create it before its judge reads the job."""

    def __init__(self) -> None:
        keep_to_itself()
        self.ours, theirs = socket.socketpair()
        self.process = os.fork()
        if self.process == 0:
            self.ours.close()
            with contextlib.suppress(BaseException):
                _tend(theirs)
            os._exit(0)
        theirs.close()

    def end(self) -> None:
        """Stop forking; existing processes continue."""
        self.ours.close()
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)

    def born(self) -> tuple[socket.socket, int]:
        """Fork a process; return (the judge's end of the channel to it, its process id)."""
        ours, theirs = socket.socketpair()
        socket.send_fds(self.ours, [b"+"], [theirs.fileno()])
        theirs.close()
        (number,) = struct.unpack("i", self.ours.recv(4))
        return ours, number


def started(env: Mapping[str, str]) -> tuple[socket.socket, int]:
    """Like `Nursery.born`, for a newly started interpreter with these environment variables."""
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-P", "-m", "labs_helpers.grading.far.answer", str(theirs.fileno())]
    number = os.fork()
    if number == 0:
        with contextlib.suppress(BaseException):
            _close_all_but(theirs.fileno())
            os.set_inheritable(theirs.fileno(), True)
            os.execve(sys.executable, command, {**os.environ, **env})
        os._exit(1)
    theirs.close()
    return ours, number


def _tend(judge: socket.socket) -> None:
    """Fork processes until the judge ends. Only the channel stays open: the judge reports to the grader elsewhere."""
    _close_all_but(judge.fileno())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    gc.freeze()
    while True:
        word, received, _, _ = socket.recv_fds(judge, 1, 1)
        if not word:
            return
        child = os.fork()
        if child == 0:
            judge.close()
            _live(socket.socket(fileno=received[0]))
        os.close(received[0])
        judge.send(struct.pack("i", child))


def _close_all_but(kept: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    for number in map(int, os.listdir("/proc/self/fd")):
        if number not in (0, 1, 2, kept):
            with contextlib.suppress(OSError):
                os.close(number)


def _live(channel: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    keep_from_others()
    torch.set_num_threads(1)  # threads do not survive a fork
    with contextlib.suppress(BaseException):
        _Answer(channel).live()
    os._exit(0)


class _Answer(Wire):
    """The answer's end of the channel."""

    def __init__(self, channel: socket.socket) -> None:
        os.environ["LABS_FAR"] = "1"
        channel.setblocking(True)
        super().__init__(channel, Memory(1, plain_memory))
        self.kept: list[torch.Tensor] = []
        self.names: dict[str, Any] = {}

    def live(self) -> None:
        while True:
            asked = self.receive()
            with _Filled():
                self.answer(asked)

    def serve(self, asked: dict[str, Any]) -> Any:
        if asked["do"] == "define":
            return self._define(*asked["args"])
        if asked["do"] == "answer":
            return self._call(*asked["args"], **asked["named"])
        if asked["do"] == "name":
            name, *value = asked["args"]
            if value:
                (self.names[name],) = value
            found = self.names.get(name)
            return found.value if type(found).__name__ == "constexpr" else found  # type: ignore[union-attr]
        if asked["do"] == "random":
            return random_state(self.function)
        if asked["do"] == "reached":
            return [one.detach() for one in tensors_reached(asked["args"])]
        return super().serve(asked)

    def _define(self, job: dict[str, Any]) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # nothing is written that another process could read
        for name in DISTRIBUTED:
            if hasattr(torch.distributed, name):
                setattr(torch.distributed, name, partial(self._distributed, name))
        for name in HOOKS:
            setattr(torch.Tensor, name, _far_hook(self, name))
        for name in SIZES:
            setattr(torch.UntypedStorage, name, _far_size(self, name, getattr(torch.UntypedStorage, name)))
        _import_what_the_notebook_does(job["imports"])
        with _kernels_far(self) if job["kernels"] else contextlib.nullcontext():
            self.function = defined(job, self.names)
        if not callable(self.function) and not hasattr(self.function, "fn"):
            raise TypeError(f"the cell does not define {job['name']}")

    def _call(self, *args: Any, **named: Any) -> Any:
        """Call the function and return its result. `kept`: the tensors kept for the backward pass of such results."""
        if not any(isinstance(one, torch.Tensor) and one.requires_grad for one in (*args, *named.values())):
            return self.function(*args, **named)
        before, saved = _alive(), list[torch.Tensor]()
        with torch.autograd.graph.saved_tensors_hooks(lambda one: (saved.append(one), one)[1], lambda one: one):
            found = self.function(*args, **named)
        if isinstance(found, torch.Tensor) and found.grad_fn is not None:
            known = set(map(id, (found, *saved, *before)))
            self.kept = saved + [one for one in _alive() if id(one) not in known]
        return found

    def graph(self, tensor: torch.Tensor) -> dict[str, Any]:
        nodes, kept, self.kept = list(_nodes(tensor)), self.kept, []
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        custom = [node for node in nodes if isinstance(node, torch.autograd.function.BackwardCFunction)]

        def backward(gradient: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            return torch.autograd.grad(tensor, leaves, gradient, retain_graph=True, allow_unused=True)

        return {"name": type([*custom, tensor.grad_fn][0]).__name__, "value": self.packed(tensor.detach()),
                "leaves": self.packed(leaves), "kept": self.packed([one.detach() for one in kept]),
                "backward": self._object(backward)}  # fmt: skip

    def _distributed(self, name: str, *args: Any, **named: Any) -> Any:
        return self.ask({"do": "distributed", "name": name}, args, named)

    def said(self, error: BaseException) -> dict[str, Any]:
        lines = [one for one in traceback.extract_tb(error.__traceback__) if one.filename.startswith("<")]
        own = [one for one in lines if one.filename == ANSWER] or lines
        return super().said(error) | {"line": own[-1].lineno if own else 0, "file": own[-1].filename if own else ""}


def _alive() -> list[torch.Tensor]:
    """Return the existing floating-point tensors that were created after the process was forked."""
    found = (one for one in gc.get_objects() if issubclass(type(one), torch.Tensor))
    return [one for one in found if one.is_floating_point()]


def _nodes(result: torch.Tensor) -> Iterator[Any]:
    """Yield the nodes of a result's graph, the result's own first."""
    seen, left = set[Any](), [result.grad_fn]
    while left:
        node = left.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            left += [one for one, _ in node.next_functions]


def _import_what_the_notebook_does(lines: list[str]) -> None:
    """Let cells import only those modules of the course that these lines import: the library may contain the answer to
    a transfer exercise."""
    known = {"labs_helpers"}
    for node in (part for line in lines for part in ast.parse(line).body):
        if isinstance(node, ast.ImportFrom):
            known |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            known |= {alias.name for alias in node.names}

    def expect_known(name: str, frame: Any) -> None:
        of_a_cell = frame.f_code.co_filename.startswith("<") and frame.f_globals.get("__name__") == "__main__"
        if of_a_cell and name.partition(".")[0] == "labs_helpers" and name not in known:
            raise ImportError(f"{name} is not among the imports of the lab's notebook")

    plain_import, by_name = builtins.__import__, importlib.import_module

    def guarded(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        for one in [name, *(f"{name}.{part}" for part in fromlist or ())] if not level else []:
            if one in known and name != "labs_helpers":
                break
            expect_known(one, sys._getframe(1))
        found = plain_import(name, globals, locals, fromlist, level)
        if name.startswith("mpi4py") and (mpi := find_mpi()) and not isinstance(mpi.Request, Requests):
            mpi.Request = Requests(mpi.Request)  # its class functions take the judge's requests
        return found

    def named(name: str, package: str | None = None) -> Any:
        expect_known(name, sys._getframe(1))
        return by_name(name, package)

    builtins.__import__, importlib.import_module = guarded, named


class _Filled(torch.overrides.TorchFunctionMode):
    """Makes torch.empty and similar functions return NaN, or the largest integer, to mark elements that nobody has
    written."""

    EMPTY = (torch.empty, torch.empty_like, torch.Tensor.new_empty, torch.empty_strided)

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = function(*args, **(kwargs or {}))
        if function in self.EMPTY and found.numel():
            room = torch.empty(0, dtype=found.dtype).set_(found.untyped_storage())
            room.fill_(float("nan") if found.is_floating_point() else torch.iinfo(found.dtype).max
                       if found.dtype != torch.bool else True)  # fmt: skip
        return found


class FarKernel:
    """Stands for one of the answer's kernels: the judge launches its own copy of the kernel with this name."""

    def __init__(self, wire: Wire, function: Callable[..., Any]) -> None:
        self.wire, self.fn = wire, function
        functools.update_wrapper(self, function)  # type: ignore[arg-type]
        given = inspect.signature(function).parameters
        self.arg_names = list(given)
        self.defaults = {name: one.default for name, one in given.items() if one.default is not one.empty}

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *args, **named: self.run(*args, grid=grid, **named)

    def run(self, *args: Any, grid: Any, warmup: bool = False, **named: Any) -> None:
        if warmup:
            return
        if callable(grid):
            grid = grid(self.defaults | dict(zip(self.arg_names, args, strict=False)) | named)
        self.wire.ask({"do": "launch", "kernel": self.fn.__name__}, (grid, *args), named)


class _Tuned:
    """Applies `@triton.autotune` and `@triton.heuristics` to a FarKernel, with the first configuration."""

    def __init__(self, kernel: Any, chosen: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.kernel, self.chosen, self.fn, self.arg_names = kernel, chosen, kernel.fn, kernel.arg_names

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return lambda *args, **named: self.run(*args, grid=grid, **named)

    def run(self, *args: Any, grid: Any, **named: Any) -> None:
        known = dict(zip(self.arg_names, args, strict=False)) | named
        self.kernel.run(*args, grid=grid, **named, **self.chosen(known))


def _far_hook(wire: Wire, name: str) -> Callable[..., Any]:
    """Let the judge register the hook, because its backward pass calls it."""
    return lambda tensor, hook: wire.ask({"do": "hook", "name": name}, (tensor, hook))


def _far_size(wire: Wire, name: str, plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of storages that lets the judge resize, or measure, the storages that it created."""

    def method(storage: torch.UntypedStorage, *args: Any) -> Any:
        block = wire.memory.block_of(storage)
        if block is None:
            return plain(storage, *args)
        found = wire.ask({"do": "storage", "name": name, "block": block.number}, args)
        return storage if name == "resize_" else found

    return method


@contextmanager
def _kernels_far(wire: Wire) -> Iterator[None]:
    """Inside the block, `triton.jit` creates kernels that the judge launches."""
    import triton

    def jit(function: Any = None, **_: Any) -> Any:
        return FarKernel(wire, function) if function is not None else jit

    def autotune(configs: Any, key: Any = (), **_: Any) -> Any:
        first = configs[0]
        options = {"num_warps": first.num_warps, "num_stages": first.num_stages}
        return lambda kernel: _Tuned(kernel, lambda known: {**first.kwargs, **options})

    def heuristics(values: Any) -> Any:
        return lambda kernel: _Tuned(kernel, lambda known: {name: of(known) for name, of in values.items()})

    others = {"jit": jit, "autotune": autotune, "heuristics": heuristics}
    before = {name: getattr(triton, name) for name in others}
    for name, other in others.items():
        setattr(triton, name, other)
    try:
        yield
    finally:
        for name, other in before.items():
            setattr(triton, name, other)


if __name__ == "__main__":
    keep_to_itself()
    _live(socket.socket(fileno=int(sys.argv[1])))
