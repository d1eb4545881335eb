"""ZeRO stage 1 over any `Communication`: every data-parallel rank updates 1/N of the parameters, and keeps only the
moments of these (Rajbhandari et al., ZeRO: Memory Optimizations Toward Training Trillion Parameter Models, 2020).

A step reduce-scatters the gradients, updates this rank's shard, and all-gathers the parameters. Together they send as
many bytes as an all-reduce. (`data_parallel.zero` overlaps them with the passes, for torch.distributed only.)
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from labs_helpers.communication.buckets import FlatBucket, fill_buckets
from labs_helpers.communication.interface import Communication
from labs_helpers.tensor_parallel.sharded_gradients import Gradient, sum_partial_gradients
from labs_helpers.training.model_part import ModelPart
from labs_helpers.training.updates import Update


class Shards(FlatBucket):
    """Parameters stored one after another in flat memory, like their gradients; `shard` is this rank's 1/N.

    names: of the parameters, which are all split over the tensor-parallel ranks, or all whole.
    """

    def __init__(self, names: list[str], parameters: list[nn.Parameter], group: Communication) -> None:
        super().__init__(parameters, multiple=group.size)
        self.names, self.group = names, group
        self.weights = torch.zeros_like(self.buffer)
        for p, view in zip(parameters, self.views_of(self.weights), strict=True):
            view.copy_(p.detach())
            p.data = view
        self.shard = nn.Parameter(group.part(self.weights, 0))

    def reduce(self) -> None:
        """Set the shard's gradient to its mean over the ranks."""
        (buffer,) = self.gather()
        self.shard.grad = self.group.reduce_scatter(buffer.mul_(1 / self.group.size))


class ShardedUpdate(Update):
    """Each data-parallel rank updates a shard. AdamW treats each number alone, so it may update any part of a matrix.

    A tied weight travels in its own bucket, so that the ranks of both copies update the same shard of it.
    """

    def __init__(self, part: ModelPart, lr: float, bucket_bytes: int) -> None:
        super().__init__(part, lr)
        names = {p: name for name, p in part.parameters.items()}
        self.shards: list[Shards] = []
        for group in self.optimizer.param_groups:
            kinds: dict[tuple[bool, bool], list[nn.Parameter]] = {}
            for p in group["params"]:
                kinds.setdefault((part.is_split(names[p]), names[p] == part.tied), []).append(p)
            buckets = [bucket for kind in kinds.values() for bucket in fill_buckets(kind, bucket_bytes)]
            new = [Shards([names[p] for p in bucket], bucket, self.dp) for bucket in buckets]
            group["params"] = [shards.shard for shards in new]
            self.shards += new
        self.buckets = len(self.shards)

    def clear(self) -> None:
        for shards in self.shards:
            shards.buffer.zero_()

    def finish(self) -> None:
        if self.part.sequence_parallel:
            sum_partial_gradients(self.part.model, self.part.mesh["tp"])
        for shards in self.shards:
            shards.reduce()

    @property
    def gradients(self) -> list[Gradient]:
        mine = [(shards.names[0], shards.shard.grad) for shards in self.shards]
        return [self.part.gradient(name, gradient) for name, gradient in mine if gradient is not None]

    @property
    def tied_gradient(self) -> Tensor | None:
        return next((shards.shard.grad for shards in self.shards if shards.names == [self.part.tied]), None)

    def apply(self) -> None:
        self.optimizer.step()
        arriving = [(shards, *self.dp.start_all_gather(shards.shard)) for shards in self.shards]
        for shards, parts, request in arriving:
            request.wait()
            shards.weights.copy_(parts.flatten())

    def moments(self, name: str) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for shards in self.shards:
            whole = self.dp.all_gather(self.state_of(shards.shard)[name])
            found |= zip(shards.names, shards.views_of(whole), strict=True)
        return found

    def load_moments(self, name: str, whole: Mapping[str, Tensor]) -> None:
        for shards in self.shards:
            flat = torch.zeros_like(shards.weights)
            for each, view in zip(shards.names, shards.views_of(flat), strict=True):
                view.copy_(whole[each])
            self.state_of(shards.shard)[name].copy_(self.dp.part(flat, 0))
