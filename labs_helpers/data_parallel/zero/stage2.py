"""ZeRO stage 2: gradients, too, are kept as shards. A bucket is whole from when it is full until it has been reduced.

What is freed is what stage 1 keeps: all but this rank's shard of the mean. So a step moves the same bytes. Of several
backward passes before a step each sends its gradients and adds to the shard; within no_sync() they stay whole instead,
which saves the sending and has stage 1's memory.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.reduction import ShardReduction
from labs_helpers.data_parallel.zero.stage1 import ZeRO1


class ZeRO2(ZeRO1):
    """As ZeRO1, but p.grad is None after a pass outside no_sync(), and passes may follow each other without it.

    reduction="all_reduce" sends twice as much as "reduce_scatter" and keeps as little."""

    def __init__(self, model: nn.Module, optimizer: Any, params: Any = None, **settings: Any) -> None:
        super().__init__(model, optimizer, params, **settings)
        self.shards = ShardReduction(self.group, self.reduction)

    def _reduce(self, bucket: Bucket) -> None:
        self.shards.start(bucket)

    def _await(self) -> None:
        self.shards.finish()
