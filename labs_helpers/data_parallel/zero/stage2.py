"""ZeRO stage 2: gradients are also sharded. A bucket is whole only from when it is full until it has been reduced.

Stage 2 frees the gradients that stage 1 keeps, all but this rank's shard of the mean. A step sends the same bytes. If
several backward passes precede a step, each sends its gradients and adds to the shard. Inside no_sync() gradients stay
whole instead, which saves the traffic but takes as much memory as stage 1.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.reduction import ShardReduction
from labs_helpers.data_parallel.zero.stage1 import ZeRO1


class ZeRO2(ZeRO1):
    """Shard gradients and optimizer states. Unlike in ZeRO1, p.grad is None after a pass outside no_sync().

    Passes may follow one another without no_sync(). reduction="all_reduce" sends twice as many gradient bytes as
    "reduce_scatter", and keeps as little.
    """

    def __init__(self, model: nn.Module, optimizer: Any, params: Any = None, **settings: Any) -> None:
        super().__init__(model, optimizer, params, **settings)
        self.shards = ShardReduction(self.group, self.reduction)

    def _reduce(self, bucket: Bucket) -> None:
        self.shards.start(bucket)

    def _await(self) -> None:
        self.shards.finish()
