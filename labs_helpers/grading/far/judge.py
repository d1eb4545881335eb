"""An answer as the judge calls it: a function whose code runs in another process, and whose kernels run here."""

from __future__ import annotations

import io
import linecache
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any

import numpy as np
import torch

from labs_helpers.course.time_limit import TimeLimit
from labs_helpers.grading.far import kernels as kernel_text
from labs_helpers.grading.far.answer import DISTRIBUTED, HOOKS, Nursery
from labs_helpers.grading.far.as_text import functions
from labs_helpers.grading.far.memory import DTYPES, Memory, Refused, plain_memory
from labs_helpers.grading.far.wire import Lost, Wire
from labs_helpers.grading.judged import ANSWER, SHARE

KERNELS = "<kernels>"
# What an answer may ask a communicator, a group or a request of the judge's for.
ASKED = frozenset(
    "rank size Get_rank Get_size Get_group Send Recv Isend Irecv Ssend Issend Sendrecv Sendrecv_replace Wait Waitall "
    "Test Testall wait test waitall poll Barrier Bcast Reduce Allreduce Allgather Gather Scatter Reduce_scatter "
    "Reduce_scatter_block Alltoall Split Free bcast reduce allreduce allgather gather scatter alltoall send recv "
    "isend irecv barrier all_reduce all_gather reduce_scatter start_all_reduce broadcast is_completed".split()
)


def made_far(
    job: dict[str, Any], known: dict[str, Any], seconds: float
) -> tuple[FarFunction, Callable[[], FarFunction]]:
    """As `judged.made_here`, in a process of job["nursery"]. Refused where a kernel is not in Triton's language."""
    function = FarFunction(job, job["nursery"], monotonic() + SHARE * seconds)
    return function, function.anew


class FarFunction:
    """Called like the answer. as_text: what checks look at. uploaded: bytes of results that it wrote itself.

    job: as `judged` has it. until: when all its calls together have taken too long, by `monotonic`.
    """

    def __init__(self, job: dict[str, Any], nursery: Nursery, until: float) -> None:
        self.job, self.nursery, self.until = job, nursery, until
        self.wire: Wire | None = None
        self.process = 0
        source = job["source"]
        linecache.cache[ANSWER] = len(source), None, io.StringIO(source, newline=None).readlines(), ANSWER
        texts = functions("\n".join(job["before"]), "<before>") | functions(source, ANSWER)
        for one in texts.values():
            one.__globals__.update(texts)
        self.as_text = (
            texts.get(job["name"])
            or functions(f"def {job['name']}(*args, **named):\n    pass\n", "<none>")[job["name"]]
        )
        self.kernels = kernel_text.kernels([*job["before"], source], KERNELS)
        self.asked = ASKED | set(job.get("asked", ()))
        self.uploaded, self.lost, self.failed = 0, "", None

    def anew(self) -> FarFunction:
        """The same answer in a process of its own."""
        return FarFunction(self.job, self.nursery, self.until)

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.failed = None
        try:
            if self.wire is None:
                self._start()
            assert self.wire is not None
            found = self.wire.ask({"do": "answer"}, args, named)
        except Lost as lost:
            self.lost = str(lost)
            if monotonic() > self.until:
                raise TimeLimit(self.lost) from None
            raise
        except Exception as error:
            if self.failed is not None and str(self.failed) == str(error):
                raise self.failed from None
            raise
        return found

    def beside(self) -> list[str]:
        """What PyTorch did beside the kernels since this was asked last."""
        done, self.uploaded = ["PyTorch's own functions"] * bool(self.uploaded and self.kernels), 0
        return done

    def _start(self) -> None:
        channel, self.process = self.nursery.born()
        memory = Memory(0, self._allocate, self._changed)
        self.wire = Wire(channel, memory, self._serve, lambda one, name: name in self.asked, lambda: self.until)
        self.wire.error = self._error  # type: ignore[method-assign]
        job = {key: self.job[key] for key in ("imports", "earlier", "before", "source", "name")}
        job |= {"kernels": bool(self.kernels)}
        self.wire.ask({"do": "define"}, (job,))

    def __del__(self) -> None:
        if self.process:
            with suppress(OSError):
                os.kill(self.process, signal.SIGKILL)
        if self.wire is not None:
            self.wire.socket.close()

    def _error(self, said: dict[str, Any]) -> BaseException:
        error = Wire.error(self.wire, said)  # type: ignore[arg-type]
        if said.get("line"):
            number = int(said["line"])
            line = linecache.getline(ANSWER, number).strip() if said.get("file") == ANSWER else ""
            error.own_line = f"\n  line {number}: {line}" if line else ""  # type: ignore[attr-defined]
        return error

    def _serve(self, asked: dict[str, Any]) -> Any:
        if asked["do"] == "distributed" and asked["name"] in DISTRIBUTED:
            return getattr(torch.distributed, asked["name"])(*asked["args"], **asked["named"])
        if asked["do"] == "hook" and asked["name"] in HOOKS:
            leaf, hook = asked["args"]
            return getattr(torch.Tensor, asked["name"])(leaf, lambda given: hook(given))
        if asked["do"] != "launch":
            raise ValueError(asked["do"])
        grid, *args = asked["args"]
        _expect_data([grid, *args, *asked["named"].values()])
        if asked["kernel"] not in self.kernels:
            raise Refused(f"{asked['kernel']} is not a kernel at the top level of a cell")
        try:
            self.kernels[asked["kernel"]][grid](*args, **asked["named"])
        except Exception as error:
            self.failed = error
            raise
        return None

    def _allocate(self, content: bytes, dtype: str, kind: str) -> torch.Tensor:
        """Memory for what the answer has made, as `torch.empty` gives it if nobody has written into it."""
        of = DTYPES[dtype]
        raw = np.frombuffer(content, np.uint8)
        if len(raw) % of.itemsize:
            of = torch.uint8
        elements = raw.reshape(-1, of.itemsize)
        if kind == "torch" and len(elements) and (elements == elements[0]).all():
            value = torch.frombuffer(bytearray(elements[0].tobytes()), dtype=of)
            size = len(elements)
            if of.is_floating_point and bool(value.isnan()):
                tensor = torch.empty(size, dtype=of)
            elif not elements[0].any():
                tensor = torch.zeros(size, dtype=of)
            else:
                tensor = torch.full((size,), value.item(), dtype=of)
        else:
            self.uploaded += len(content)
            tensor = plain_memory(content, dtype, kind)
        return tensor

    def _changed(self, content: bytes) -> None:
        self.uploaded += len(content)


def _expect_data(given: list[Any] | tuple[Any, ...]) -> None:
    """Refused where a kernel is given what is neither a tensor nor a number: of an object of the answer's each look
    could see another address."""
    known = (torch.Tensor, torch.Size, torch.dtype, int, float, str, type(None))
    language = getattr(sys.modules.get("triton.language"), "dtype", torch.dtype)
    for one in given:
        if type(one) in (list, tuple):
            _expect_data(one)
        elif not isinstance(one, (*known, language, np.number, np.bool_)):
            raise Refused(f"a kernel is given a {type(one).__name__}")
