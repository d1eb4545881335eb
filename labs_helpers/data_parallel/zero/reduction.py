"""Reduce whole gradients to shards of their mean with few whole buckets in memory; for stages 2 and 3."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from torch import Tensor

from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.collectives import FlatCommunication


class UnderWay(NamedTuple):
    """A bucket in flight. flat: this rank's gradients, (numel,), the input. mine: receives the shard of the mean."""

    bucket: Bucket
    flat: Tensor
    mine: Tensor
    request: Request


class ShardReduction:
    """Reduce buckets, at most `at_once` at a time.

    One bucket in flight keeps the network busy. Each further one costs a bucket's memory, and helps only if the network
    falls behind for a while.
    """

    def __init__(self, group: FlatCommunication, reduction: str = "reduce_scatter", at_once: int = 1) -> None:
        self.group, self.reduction, self.at_once = group, reduction, at_once
        self.under_way: deque[UnderWay] = deque()

    def start(self, bucket: Bucket) -> None:
        """Take the gradients of the bucket's parameters, set their .grad to None, and send them."""
        while len(self.under_way) >= self.at_once:
            self._take_first()
        flat = bucket.collect()
        if self.reduction == "all_reduce":
            mine = bucket.layout.shard(flat, self.group.rank)
            request = self.group.start_mean(flat)
        else:
            mine = flat.new_empty(bucket.layout.shard_numel)
            request = self.group.start_mean_shard(mine, flat)
        self.under_way.append(UnderWay(bucket, flat, mine, request))

    def finish(self) -> None:
        """Wait until all results have been added to the shards."""
        while self.under_way:
            self._take_first()

    def _take_first(self) -> None:
        bucket, flat, mine, request = self.under_way.popleft()
        request.wait()
        if bucket.gradient_shard is not None:
            bucket.gradient_shard.add_(mine)
        else:
            # A view would keep the whole bucket alive.
            bucket.gradient_shard = mine.clone() if self.reduction == "all_reduce" else mine
