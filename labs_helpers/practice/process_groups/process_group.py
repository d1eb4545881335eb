"""A process group of practice ranks: the methods that torch.distributed's functions call on `group=`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from labs_helpers.practice.process_groups.caller import Caller, Results
from labs_helpers.practice.process_groups.memory import contiguous, dense
from labs_helpers.practice.process_groups.reductions import operation_name, reduced
from labs_helpers.practice.process_groups.shapes import expect_joined, expect_list
from labs_helpers.practice.process_groups.work import PracticeWork

Tensors = Sequence[Tensor]


class PracticeGroup(Caller):
    """A group that accepts the shapes and dtypes that gloo accepts. A tensor must be contiguous, or without gaps if
    it is not split or joined: from a slice with gaps gloo computes wrong numbers, and NCCL refuses it."""

    def allreduce(self, tensors: Tensors, opts: Any = None) -> PracticeWork:
        return self._reduce_all("all_reduce", tensors, opts or dist.AllreduceOptions())

    def allreduce_coalesced(self, tensors: Tensors, opts: Any = None) -> PracticeWork:
        return self._reduce_all("all_reduce_coalesced", tensors, opts or dist.AllreduceCoalescedOptions())

    def _reduce_all(self, name: str, tensors: Tensors, opts: Any) -> PracticeWork:
        flat = [dense(name, x) for x in tensors]
        op = operation_name(opts.reduceOp, flat[0].dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[reduced(op, parts) for parts in zip(*brought, strict=True)]] * self.size()

        return self._start(name, flat, flat, finish, opts, op=op)

    def reduce(self, tensors: Tensors, opts: Any) -> PracticeWork:
        """Reduce to rank dst. On the other ranks the tensor becomes useless: gloo leaves partial sums in it,
        practice ranks NaN."""
        root, flat = self._root("reduce", "dst", opts.rootRank), [dense("reduce", x) for x in tensors]
        op = operation_name(opts.reduceOp, flat[0].dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            total = [reduced(op, parts) for parts in zip(*brought, strict=True)]
            return [total if place == root else None for place in range(self.size())]

        return self._start("reduce", flat, flat, finish, opts, op=op, dst=root)

    def broadcast(self, tensors: Tensors, opts: Any) -> PracticeWork:
        root, flat = self._root("broadcast", "src", opts.rootRank), [dense("broadcast", x) for x in tensors]

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[] if place == root else brought[root] for place in range(self.size())]

        return self._start("broadcast", flat, [] if root == self._place else flat, finish, opts, src=root)

    def _allgather_base(self, output: Tensor, input: Tensor, opts: Any = None) -> PracticeWork:
        name = "all_gather_into_tensor"
        expect_joined(name, output, "output", input, "input", self.size())
        mine, whole = contiguous(name, input), contiguous(name, output)

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[torch.cat([one[0] for one in brought])]] * self.size()

        return self._start(name, [mine], [whole], finish, opts, keep_inputs=True, elements=whole.numel())

    def allgather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any = None) -> PracticeWork:
        name = "all_gather"
        expect_list(name, outputs[0], inputs[0], self.size())
        mine, parts = contiguous(name, inputs[0]), [contiguous(name, x) for x in outputs[0]]
        whole = self.size() * mine.numel()
        return self._start(name, [mine], parts, self._listed, opts, keep_inputs=True, elements=whole)

    def gather(self, outputs: Sequence[Tensors], inputs: Tensors, opts: Any) -> PracticeWork:
        root, mine = self._root("gather", "dst", opts.rootRank), contiguous("gather", inputs[0])
        here = root == self._place
        if here:
            expect_list("gather", outputs[0], inputs[0], self.size())
        parts = [contiguous("gather", x) for x in outputs[0]] if here else []

        def finish(brought: list[list[Tensor]]) -> Results:
            return [every if place == root else [] for place, every in enumerate(self._listed(brought))]

        whole = self.size() * mine.numel()
        return self._start("gather", [mine], parts, finish, opts, keep_inputs=True, elements=whole, dst=root)

    def _reduce_scatter_base(self, output: Tensor, input: Tensor, opts: Any = None) -> PracticeWork:
        name, opts = "reduce_scatter_tensor", opts or dist.ReduceScatterOptions()
        expect_joined(name, input, "input", output, "output", self.size())
        whole, mine = contiguous(name, input), contiguous(name, output)
        op = operation_name(opts.reduceOp, whole.dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[part] for part in reduced(op, [one[0] for one in brought]).view(self.size(), mine.numel())]

        return self._start(name, [whole], [mine], finish, opts, op=op)

    def reduce_scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> PracticeWork:
        name = "reduce_scatter"
        expect_list(name, inputs[0], outputs[0], self.size())
        parts, mine = [contiguous(name, x) for x in inputs[0]], contiguous(name, outputs[0])
        op = operation_name(opts.reduceOp, mine.dtype)

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[reduced(op, parts)] for parts in zip(*brought, strict=True)]

        return self._start(name, parts, [mine], finish, opts, op=op)

    def scatter(self, outputs: Tensors, inputs: Sequence[Tensors], opts: Any) -> PracticeWork:
        root, mine = self._root("scatter", "src", opts.rootRank), contiguous("scatter", outputs[0])
        if root == self._place:
            expect_list("scatter", inputs[0], outputs[0], self.size())
        # The other ranks pass tensors of the same sizes, which nobody reads.
        parts = [contiguous("scatter", x) for x in inputs[0]] if root == self._place else [mine] * self.size()

        def finish(brought: list[list[Tensor]]) -> Results:
            return [[part] for part in brought[root]]

        return self._start("scatter", parts, [mine], finish, opts, src=root)

    def barrier(self, opts: Any = None) -> PracticeWork:
        return self._start("barrier", [], [], self._listed, opts)

    all_gather_single, reduce_scatter_single = _allgather_base, _reduce_scatter_base  # names in PyTorch 2.13

    def _listed(self, brought: list[list[Tensor]]) -> Results:
        """Return the first tensor of each list for every rank."""
        return [[x for one in brought for x in one[:1]]] * self.size()
