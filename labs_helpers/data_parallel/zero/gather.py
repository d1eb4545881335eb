"""The all-gather that follows a sharded step, if wanted beside the next forward pass.

A layer's new weights are needed only when the forward pass reaches that layer. So the gathers are queued in the order
of the forward pass, after those that nobody knows when to wait for, and a hook before each module waits for the buckets
of its own parameters.
"""

from __future__ import annotations

import weakref
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import nn

from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.zero.bucket import Bucket


class ParameterGather:
    """overlap=False: `start()` returns when all parameters have arrived. overlap=True requires that every parameter is
    read only in the forward pass of a module that holds it, or after a `wait()`. `start()` waits for buckets with a
    parameter whose module has not been called so far, such as a weight that its parent multiplies with.

    The model's hooks keep this object alive, so that a gather which is under way is still waited for when its optimizer
    is gone. This object refers to modules weakly, so that it does not keep the model alive in turn. When both are gone
    it waits itself, since NCCL keeps the memory of a collective that nobody has waited for.
    """

    def __init__(self, model: nn.Module, overlap: bool) -> None:
        self.overlap = overlap
        self.buckets: list[Bucket] = []
        self.order: list[Bucket] = []  # in which gathers start; the same on all ranks
        self.under_way: dict[Bucket, Request] = {}
        self.called: WeakSet[nn.Module] = WeakSet()
        holders = [m for m in model.modules() if any(True for _ in m.parameters(recurse=False))] if overlap else []
        self.readers: WeakKeyDictionary[nn.Module, list[Bucket]] = WeakKeyDictionary({m: [] for m in holders})
        self.hooks = [m.register_forward_pre_hook(self._before_forward) for m in holders]
        weakref.finalize(self, _wait_for, self.under_way).atexit = False

    def follow(self, buckets: list[Bucket]) -> None:
        """buckets: those to gather, in the order of the backward pass."""
        self.buckets, self.order = buckets, []
        of = {p: bucket for bucket in buckets for p in bucket.parameters}
        for module in self.readers:
            self.readers[module] = list(dict.fromkeys(of[p] for p in module.parameters(recurse=False) if p in of))

    def start(self) -> None:
        """Begins to gather all buckets' shards."""
        unread = {bucket for module, some in self.readers.items() if module not in self.called for bucket in some}
        at_once = [bucket for bucket in self.buckets if not self.overlap or bucket in unread]
        self.order = self.order or self._agree(at_once)
        for bucket in self.order:
            self.under_way[bucket] = bucket.group.start_gather(bucket.whole, bucket.shard)
        self.wait(at_once)

    def _agree(self, at_once: list[Bucket]) -> list[Bucket]:
        """The order of the gathers from now on: first what some rank waits for at once, then as the forward pass goes.

        Ranks may have called different modules. If each started its gathers in an order of its own, one bucket's
        parameters would be written into another. So they agree once, after the first pass; which modules a rank calls
        later decides only what it waits for.
        """
        if not self.overlap or not self.buckets:
            return self.buckets
        group = self.buckets[0].group
        mine = torch.tensor([bucket in at_once for bucket in self.buckets], dtype=torch.uint8, device=group.device)
        first = dict(zip(self.buckets, group.all_reduce(mine, "max").tolist(), strict=True))
        return sorted(reversed(self.buckets), key=lambda bucket: -first[bucket])

    def wait(self, buckets: list[Bucket] | None = None) -> None:
        """Until these buckets' parameters, by default all, are there."""
        for bucket in self.buckets if buckets is None else buckets:
            if bucket in self.under_way:
                self.under_way.pop(bucket).wait()

    def _before_forward(self, module: nn.Module, arguments: Any) -> None:
        self.called.add(module)
        if self.under_way:
            self.wait(self.readers[module])

    def remove(self) -> None:
        for hook in self.hooks:
            hook.remove()


def _wait_for(under_way: dict[Bucket, Request]) -> None:
    for request in under_way.values():
        request.wait()
    under_way.clear()
