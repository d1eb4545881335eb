"""Serve the requests of an answer's process in the judge: kernels, messages to other ranks, hooks, and memory."""

from __future__ import annotations

import linecache
import os
import re
import signal
import sys
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from labs_helpers.grading.far.answer import DISTRIBUTED, HOOKS, SIZES
from labs_helpers.grading.far.kernels import Kernels
from labs_helpers.grading.far.memory import DTYPES, Memory, Refused, plain_memory
from labs_helpers.grading.far.wire import Far, Wire
from labs_helpers.grading.judged import ANSWER

KERNELS = "<kernels>"  # the name of their file
# The attributes of a communicator, a group or a request of the judge's that any answer may read.
ASKED = frozenset(
    "rank size Get_rank Get_size Get_group Send Recv Isend Irecv Ssend Issend Sendrecv Sendrecv_replace Wait Waitall "
    "Test Testall wait test waitall poll Barrier Bcast Reduce Allreduce Allgather Gather Scatter Reduce_scatter "
    "Reduce_scatter_block Alltoall Split Free bcast reduce allreduce allgather gather scatter alltoall send recv "
    "isend irecv barrier all_reduce all_gather reduce_scatter start_all_reduce broadcast is_completed".split()
)
OF_LOSSES = frozenset("add backward detach div float item mean mul neg sub sum".split())

# And of a module or an optimizer: what reads, traverses, trains or hooks it. `compile` would start programs.
OF_MODULES = frozenset(
    "parameters named_parameters buffers named_buffers modules named_modules children named_children get_parameter "
    "get_buffer get_submodule state_dict load_state_dict zero_grad train eval training requires_grad_ forward apply to "
    "register_forward_hook register_forward_pre_hook register_full_backward_hook register_full_backward_pre_hook "
    "step param_groups state defaults add_param_group register_step_pre_hook register_step_post_hook".split()
)


class JudgeWire(Wire):
    """The judge's end of the channel to a process. The process ends with this object, when neither the answer nor
    any object of that process is in use. kernels: the answer's. asked: further attributes that it may read."""

    def __init__(self, channel: Any, process: int, kernels: Kernels, asked: Iterable[str], deadline: float) -> None:
        self.written = _Written()
        super().__init__(channel, Memory(0, self.written.allocated, self.written.changed), deadline)
        self.kernels, self.asked = kernels, ASKED | set(asked)
        self.compiled: dict[str, Any] = {}
        weakref.finalize(self, _end, channel, process)
        self.failed: Exception | None = None
        self.process = process

    def has_ended(self) -> bool:
        with suppress(ChildProcessError):  # it is the nursery's child, whose end nobody waits for, or this process's
            return os.waitid(os.P_PID, self.process, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
        return not os.path.exists(f"/proc/{self.process}")

    def ask_for_answer(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Return the answer's result. An error that a kernel raised here is raised unchanged, even if the answer
        continued after it: the error makes a GPU unusable, and an answer could pass on a kernel's results by whether
        it fails."""
        self.failed = None
        try:
            found = self.ask({"do": "answer"}, args, named)
        except Exception as error:
            if self.failed is None or str(self.failed) != str(error):
                raise
        if self.failed is not None:
            raise self.failed
        return found

    def beside(self) -> list[str]:
        """Return what the answer's process itself has written since the last call."""
        done, self.written.bytes = ["PyTorch's own functions"] * bool(self.written.bytes), 0
        return done

    def may_get(self, one: Any, name: str) -> bool:
        of_modules = isinstance(one, torch.nn.Module | torch.optim.Optimizer) and name in OF_MODULES
        return name in self.asked or of_modules or (isinstance(one, torch.Tensor) and name in OF_LOSSES)

    def error(self, said: dict[str, Any]) -> BaseException:
        error = super().error(said)
        if said.get("line"):
            number = int(said["line"])
            line = linecache.getline(ANSWER, number).strip() if said.get("file") == ANSWER else ""
            error.own_line = f"\n  line {number}: {line}" if line else ""  # type: ignore[attr-defined]
        return error

    def serve(self, asked: dict[str, Any]) -> Any:
        args, named = asked["args"], asked["named"]
        if asked["do"] == "distributed" and asked["name"] in DISTRIBUTED:
            return getattr(torch.distributed, asked["name"])(*args, **named)
        if asked["do"] == "hook" and asked["name"] in HOOKS:
            leaf, hook = args
            return getattr(torch.Tensor, asked["name"])(leaf, lambda given: hook(given))
        if asked["do"] == "storage" and asked["name"] in SIZES:
            return self._storage(asked["block"], asked["name"], *args)
        if asked["do"] == "launch":
            return self._launch(asked["kernel"], args, named)
        return super().serve(asked)

    def reached(self, one: Far) -> list[torch.Tensor]:
        return list(self.ask({"do": "reached"}, (one,)))

    def with_graph(self, said: dict[str, Any]) -> Any:
        """Return a result whose backward pass calls the answer.

        Its node has the name of the answer's own Function, or else of PyTorch's node. Tensors that the answer keeps for
        the backward pass are saved here too, so that a check of saved tensors finds them.
        """
        value, leaves, kept, backward = (self.unpacked(said[name]) for name in ("value", "leaves", "kept", "backward"))
        name = re.fullmatch(r"([A-Za-z_]\w{0,80}?)(Backward)?", said["name"])
        if name is None:
            raise Refused("no name of a graph")

        def forward(ctx: Any, *leaves: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(*kept)
            kept.clear()
            return value.detach()

        methods = {"forward": staticmethod(forward), "backward": staticmethod(lambda ctx, one: tuple(backward(one)))}
        return type(name[1], (torch.autograd.Function,), methods).apply(*leaves)  # type: ignore[attr-defined]

    def _storage(self, number: int, name: str, *args: int) -> int | None:
        """Return the size of a block's storage, or resize it. A check may watch the storage, so its memory must not
        move."""
        storage, method = self.memory.blocks[number].owner, getattr(torch.UntypedStorage, name)
        if not self.memory.is_own(number) or not isinstance(storage, torch.UntypedStorage):
            raise Refused("no storage")
        if name == "resize_" and storage.data_ptr() not in getattr(method, "watched", ()):
            raise RuntimeError("resize_: this memory is the caller's, and stays as it is")
        found = method(storage, *map(int, args))
        return None if name == "resize_" else int(found)

    def _launch(self, name: str, args: list[Any], named: dict[str, Any]) -> None:
        grid, *args = args
        _expect_data([grid, *args, *named.values()])
        if name not in self.kernels.names:
            raise Refused(f"{name} is not a kernel at the top level of a cell")
        if not self.compiled:
            self.compiled = self.kernels.compiled(KERNELS, lambda number: self.ask({"do": "name"}, (number,)))
        try:
            self.compiled[name][grid](*args, **named)
        except Exception as error:
            self.failed = error
            raise


def _end(channel: Any, process: int) -> None:
    channel.close()
    with suppress(OSError):
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)


class _Written:
    """Counts the bytes that an answer's process has computed itself. Memory that only prepares results does not
    count: uninitialized memory, or memory filled with one initial value of a sum or a maximum."""

    BEGINNINGS = (0.0, 1.0, -1.0, float("inf"), float("-inf"))

    def __init__(self) -> None:
        self.bytes = 0

    def allocated(self, content: bytes, dtype: str, kind: str) -> torch.Tensor:
        """Return memory for a block that the answer created, from `torch.empty` if nobody has written into it."""
        of = DTYPES[dtype]
        if kind == "torch" and len(content) % of.itemsize == 0:
            tensor = torch.frombuffer(bytearray(content), dtype=of)
            first = tensor[0]
            if of.is_floating_point and bool(tensor.isnan().all()):
                return torch.empty(len(tensor), dtype=of)
            empty = not of.is_floating_point and not of.is_complex and of != torch.bool
            if bool((tensor == first).all()) and (
                first.item() in self.BEGINNINGS or (empty and first.item() == torch.iinfo(of).max)
            ):
                return torch.full((len(tensor),), first.item(), dtype=of)
        self.bytes += len(content)
        return plain_memory(content, dtype, kind)

    def changed(self, content: bytes) -> None:
        self.bytes += len(content)


def _expect_data(given: list[Any] | tuple[Any, ...]) -> None:
    """Raise Refused if a kernel's argument is neither a tensor nor a number: an object of the answer could return
    another address on each access."""
    known = (torch.Tensor, torch.Size, torch.dtype, int, float, str, type(None))
    language = getattr(sys.modules.get("triton.language"), "dtype", torch.dtype)
    for one in given:
        if type(one) in (list, tuple):
            _expect_data(one)
        elif not isinstance(one, (*known, language, np.number, np.bool_)):
            raise Refused(f"a kernel is given a {type(one).__name__}")
