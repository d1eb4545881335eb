"""The all-gather that follows a sharded step, if wanted beside the next forward pass.

Computing has nothing to do with a layer's new weights before it comes to that layer. So the gathers are queued in the
order of the forward pass, and a hook before each module waits for the buckets of its own parameters.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.tensor_parallel.communication import Request


class ParameterGather:
    """overlap=False: `start()` ends with all parameters there. overlap=True asks that every parameter is read in the
    forward pass of a module that holds it, and nowhere else before a `wait()`. Buckets with a parameter whose module
    has not been called so far, such as a weight that its parent multiplies with, are waited for in `start()`.
    """

    def __init__(self, model: nn.Module, overlap: bool) -> None:
        self.model, self.overlap = model, overlap
        self.buckets: list[Bucket] = []
        self.under_way: dict[Bucket, Request] = {}
        self.called: set[nn.Module] = set()
        self.readers: dict[nn.Module, list[Bucket]] = {}
        readers = [m for m in model.modules() if any(True for _ in m.parameters(recurse=False))] if overlap else []
        self.hooks = [m.register_forward_pre_hook(self._before_forward) for m in readers]

    def follow(self, buckets: list[Bucket]) -> None:
        """buckets: those to gather, in the order of the backward pass."""
        self.buckets = buckets
        if not self.overlap:
            return
        of = {p: bucket for bucket in buckets for p in bucket.parameters}
        self.readers = {
            module: list(dict.fromkeys(of[p] for p in module.parameters(recurse=False) if p in of))
            for module in self.model.modules()
        }

    def start(self) -> None:
        """Begins to gather all buckets' shards."""
        unread = {bucket for module, some in self.readers.items() if module not in self.called for bucket in some}
        at_once = [bucket for bucket in self.buckets if not self.overlap or bucket in unread]
        # First what is waited for at once: the collectives of a group run one after the other.
        for bucket in [*at_once, *(b for b in reversed(self.buckets) if b not in at_once)]:
            self.under_way[bucket] = bucket.group.start_gather(bucket.whole, bucket.shard)
        self.wait(at_once)

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
