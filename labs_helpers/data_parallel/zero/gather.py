"""The all-gather after a sharded step, which can overlap with the next forward pass.

A layer needs its new weights only when the forward pass reaches it. The gathers are therefore queued in the order of
the forward pass, after those without a known point to wait, and a hook before each module waits for the buckets that
hold its parameters.
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
    """Gather updated parameters in `start()`, or, with overlap=True, during the next forward pass.

    overlap=True requires that every parameter is read only in the forward pass of a module that holds it, or after
    `wait()`. `start()` waits for buckets with a parameter whose module has not been called so far, such as a weight
    that its parent uses directly.

    The model's hooks keep this object alive, so that a gather in flight is still waited for after its optimizer has
    been deleted. The object itself refers to modules weakly, and does not keep the model alive. When both are deleted,
    it waits, because NCCL retains the memory of a collective until someone waits for it.
    """

    def __init__(self, model: nn.Module, overlap: bool) -> None:
        self.overlap = overlap
        self.buckets: list[Bucket] = []
        self.order: list[Bucket] = []  # the order in which gathers start, identical on all ranks
        self.under_way: dict[Bucket, Request] = {}
        self.called: WeakSet[nn.Module] = WeakSet()
        holders = [m for m in model.modules() if any(True for _ in m.parameters(recurse=False))] if overlap else []
        self.readers: WeakKeyDictionary[nn.Module, list[Bucket]] = WeakKeyDictionary({m: [] for m in holders})
        self.hooks = [m.register_forward_pre_hook(self._before_forward) for m in holders]
        weakref.finalize(self, _wait_for, self.under_way).atexit = False

    def follow(self, buckets: list[Bucket]) -> None:
        """Set the buckets to gather, in the order of the backward pass."""
        self.buckets, self.order = buckets, []
        of = {p: bucket for bucket in buckets for p in bucket.parameters}
        for module in self.readers:
            self.readers[module] = list(dict.fromkeys(of[p] for p in module.parameters(recurse=False) if p in of))

    def start(self) -> None:
        """Start to gather the shards of all buckets."""
        unread = {bucket for module, some in self.readers.items() if module not in self.called for bucket in some}
        at_once = [bucket for bucket in self.buckets if not self.overlap or bucket in unread]
        self.order = self.order or self._agree(at_once)
        for bucket in self.order:
            self.under_way[bucket] = bucket.group.start_gather(bucket.whole, bucket.shard)
        self.wait(at_once)

    def _agree(self, at_once: list[Bucket]) -> list[Bucket]:
        """Return the order of all later gathers: first those that some rank needs immediately, then in forward order.

        Ranks may have called different modules. If each rank chose its own order, one bucket's parameters could be
        written into another. The ranks therefore agree once, after the first pass. Modules called later affect only
        what a rank waits for.
        """
        if not self.overlap or not self.buckets:
            return self.buckets
        group = self.buckets[0].group
        mine = torch.tensor([bucket in at_once for bucket in self.buckets], dtype=torch.uint8, device=group.device)
        first = dict(zip(self.buckets, group.all_reduce(mine, "max").tolist(), strict=True))
        return sorted(reversed(self.buckets), key=lambda bucket: -first[bucket])

    def wait(self, buckets: list[Bucket] | None = None) -> None:
        """Wait until the parameters of these buckets, by default all, have arrived."""
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
