"""From whole gradients to shards of their mean, with few whole buckets in memory at a time; stages 2 and 3."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from torch import Tensor

from labs_helpers.communication.interface import Request
from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.collectives import FlatCommunication


class UnderWay(NamedTuple):
    """flat: this rank's gradients, (numel,), which the collective reads; mine: where the shard of the mean will be."""

    bucket: Bucket
    flat: Tensor
    mine: Tensor
    request: Request


class ShardReduction:
    """at_once: how many buckets may be on their way as another is filled. One keeps the network busy; each further one
    is a bucket's memory for the case that the network falls behind for a while."""

    def __init__(self, group: FlatCommunication, reduction: str = "reduce_scatter", at_once: int = 1) -> None:
        self.group, self.reduction, self.at_once = group, reduction, at_once
        self.under_way: deque[UnderWay] = deque()

    def start(self, bucket: Bucket) -> None:
        """Takes the gradients of the bucket's parameters, which have none then, and sends them."""
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
        """Until all that was sent has been added to the shards."""
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
