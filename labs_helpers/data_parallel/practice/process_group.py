"""A process group of practice ranks: what torch.distributed's functions call with `group=`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labs_helpers.collectives.practice.baton import Baton
from labs_helpers.collectives.practice.mailbox import COLLECTIVE
from labs_helpers.data_parallel.practice.meeting import TorchMeeting
from labs_helpers.data_parallel.practice.memory import contiguous, dense
from labs_helpers.data_parallel.practice.record import START, Called, Event, ProcessRun
from labs_helpers.data_parallel.practice.reductions import operation_name, reduced
from labs_helpers.data_parallel.practice.work import PracticeWork, TensorCall

Results = list[list[Tensor]]  # of each rank, for each of its outputs
ProcessGroup: Any = dist.ProcessGroup


class PracticeGroup(ProcessGroup):  # type: ignore[misc]
    """One rank's group: `ranks` of all ranks, of which it is the one at place `rank`."""

    def __init__(
        self,
        baton: Baton,
        run: ProcessRun,
        meetings: dict[tuple[Any, ...], TorchMeeting],
        ranks: tuple[int, ...],
        rank: int,
    ) -> None:
        super().__init__(rank, len(ranks))
        self._baton, self._run, self._meetings, self._ranks, self._place = baton, run, meetings, ranks, rank
        self._number = 0

    def mark(self, what: str) -> None:
        """Notes in the log that this rank has come to a place."""
        self._run.log.append(Event(self._ranks[self._place], what))

    def allreduce(self, tensors: Sequence[Tensor], opts: Any = None) -> PracticeWork:
        return self._reduce_all("all_reduce", tensors, opts or dist.AllreduceOptions())

    def allreduce_coalesced(self, tensors: Sequence[Tensor], opts: Any = None) -> PracticeWork:
        return self._reduce_all("all_reduce_coalesced", tensors, opts or dist.AllreduceCoalescedOptions())

    def _reduce_all(self, name: str, tensors: Sequence[Tensor], opts: Any) -> PracticeWork:
        flat = [dense(name, x) for x in tensors]
        op = operation_name(opts.reduceOp, flat[0].dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[reduced(op, list(parts)) for parts in zip(*brought, strict=True)]] * self.size()

        return self._start(name, flat, flat, finish, opts, op=op)

    def broadcast(self, tensors: Sequence[Tensor], opts: Any) -> PracticeWork:
        root, flat = self._root("broadcast", "src", opts.rootRank), [dense("broadcast", x) for x in tensors]
        outputs = [] if root == self._place else flat

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[] if place == root else brought[root] for place in range(self.size())]

        return self._start("broadcast", flat, outputs, finish, opts, root=root)

    def reduce(self, tensors: Sequence[Tensor], opts: Any) -> PracticeWork:
        """On other ranks than dst the tensor is of no use afterwards: gloo leaves parts of sums in it, these NaN."""
        root, flat = self._root("reduce", "dst", opts.rootRank), [dense("reduce", x) for x in tensors]
        op = operation_name(opts.reduceOp, flat[0].dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            totals = [reduced(op, list(parts)) for parts in zip(*brought, strict=True)]
            return [totals if place == root else None for place in range(self.size())]  # type: ignore[misc]

        return self._start("reduce", flat, flat, finish, opts, op=op, root=root)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> PracticeWork:
        name, n = "all_gather_into_tensor", self.size()
        mine, whole = contiguous(name, input), contiguous(name, output)
        _expect_dtype(name, output, input)
        joined = (n * input.shape[0], *input.shape[1:]) if input.ndim else (n,)
        if tuple(output.shape) != joined:
            raise RuntimeError(
                f"{name}: output has shape {tuple(output.shape)}; {n} inputs of shape {tuple(input.shape)}, one after "
                f"another along the first dimension, have {joined}"
            )
        return self._start(name, [mine], [whole], self._joined, opts, keep=True, whole=whole)

    all_gather_single = _allgather_base

    def allgather(self, output_lists: Sequence[Sequence[Tensor]], inputs: Sequence[Tensor], opts: Any = None) -> Any:
        name, outputs, n = "all_gather", output_lists[0], self.size()
        if len(outputs) != n:
            raise RuntimeError(f"{name}: the list has {len(outputs)} tensors, the group {n} ranks")
        for i, x in enumerate(outputs):
            if x.shape != inputs[0].shape:
                shapes = f"shape {tuple(x.shape)}, the rank's own has {tuple(inputs[0].shape)}"
                raise RuntimeError(f"{name}: tensor {i} of the list has {shapes}; gloo takes one shape")
            _expect_dtype(name, x, inputs[0])
        flat = [contiguous(name, x) for x in outputs]

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[one[0] for one in brought]] * n

        return self._start(name, [contiguous(name, inputs[0])], flat, finish, opts, keep=True, times=n)

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> PracticeWork:
        name, n, opts = "reduce_scatter_tensor", self.size(), opts or dist.ReduceScatterOptions()
        whole, mine = contiguous(name, input), contiguous(name, output)
        _expect_dtype(name, output, input)
        rows = [x.shape[0] if x.ndim else 1 for x in (output, input)]
        if n * rows[0] != rows[1] or n * mine.numel() != whole.numel():
            shapes = f"input has shape {tuple(input.shape)}, output {tuple(output.shape)}"
            raise RuntimeError(f"{name}: {shapes}; the input's first dimension has to be {n} × the output's")
        op = operation_name(opts.reduceOp, whole.dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            return (
                [[part] for part in reduced(op, [one[0] for one in brought]).chunk(n)]
                if whole.numel()
                else [[mine]] * n
            )

        return self._start(name, [whole], [mine], finish, opts, op=op)

    reduce_scatter_single = _reduce_scatter_base

    def reduce_scatter(self, outputs: Sequence[Tensor], input_lists: Sequence[Sequence[Tensor]], opts: Any) -> Any:
        name, inputs, n = "reduce_scatter", input_lists[0], self.size()
        if len(inputs) != n:
            raise RuntimeError(f"{name}: the list has {len(inputs)} tensors, the group {n} ranks")
        if inputs[self._place].shape != outputs[0].shape:
            mine = f"{tuple(inputs[self._place].shape)}, output {tuple(outputs[0].shape)}"
            raise RuntimeError(f"{name}: this rank's tensor in the list has shape {mine}")
        op = operation_name(opts.reduceOp, outputs[0].dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[reduced(op, list(parts))] for parts in zip(*brought, strict=True)]

        flat = [contiguous(name, x) for x in inputs]
        return self._start(name, flat, [contiguous(name, outputs[0])], finish, opts, op=op)

    def barrier(self, opts: Any = None) -> PracticeWork:
        return self._start("barrier", [], [], lambda brought: [[]] * self.size(), opts)

    def _joined(self, brought: list[list[Tensor]]) -> Results:
        return [[torch.cat([one[0] for one in brought])]] * self.size()

    def _root(self, name: str, what: str, root: int) -> int:
        if not 0 <= root < self.size():
            raise ValueError(f"{name}: {what} is {root} in the group, whose ranks are 0 to {self.size() - 1}")
        return int(root)

    def _start(
        self,
        name: str,
        inputs: list[Tensor],
        outputs: list[Tensor],
        finish: Callable[[list[Any]], list[Any]],
        opts: Any,
        *,
        op: str | None = None,
        root: int | None = None,
        keep: bool = False,
        whole: Tensor | None = None,
        times: int = 1,
    ) -> PracticeWork:
        """Comes to this group's next collective. keep: the inputs stay readable meanwhile. whole, times: of what
        `nbytes` are, and how often."""
        me, baton, run = self._ranks[self._place], self._baton, self._run
        call = TensorCall(COLLECTIVE, me, posted=baton.clock[me], name=name, ranks=self._ranks)
        call.inputs, call.outputs, call.brought = inputs, outputs, [x.clone() for x in inputs]
        sizes = [x.numel() for x in inputs]
        dtype = str(inputs[0].dtype) if inputs else ""
        counted = [whole] if whole is not None else inputs
        called = Called(
            me,
            name,
            self._ranks,
            sum(one.rank == me for one in run.calls),
            times * sum(x.nbytes for x in counted),
            times * sum(x.numel() for x in counted),
            dtype.removeprefix("torch."),
            op,
            root,
            bool(getattr(opts, "asyncOp", True)),
            inputs[0].data_ptr() if inputs else 0,
        )
        call.alike = (
            {"dtype": dtype, "op": op, "src": root} if name == "broadcast" else {"dtype": dtype, "op": op, "dst": root}
        )
        call.alike["elements"] = sizes[0] if len(sizes) == 1 else sizes
        run.calls.append(called)
        run.log.append(Event(me, START, called))
        meeting = self._meetings.setdefault((*self._ranks, "number", self._number), TorchMeeting())
        self._number += 1
        meeting.join(self._place, call, finish)
        if called.asynchronous:
            baton.requests.append(call)
            call.leave(keep)
        return PracticeWork(baton, run.log, call, called)

    def __repr__(self) -> str:
        return f"<practice group of ranks {', '.join(map(str, self._ranks))}>"


def _expect_dtype(name: str, output: Tensor, input: Tensor) -> None:
    if output.dtype != input.dtype:
        raise RuntimeError(f"{name}: output is {output.dtype}, input {input.dtype}; they have to be the same")
