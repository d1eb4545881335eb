"""ZeRO stage 1: every rank has all parameters, all gradients, and 1/N of the optimizer states.

Each step averages the gradients, updates this rank's 1/N, and all-gathers the updated parameters. A rank needs only its
own shard of the mean. With "reduce_scatter", it receives just this shard, in place, and a step sends as many bytes as
DistributedDataParallel's all-reduce. With "all_reduce", every rank receives the whole mean in p.grad, and a step sends
1.5 times as many bytes.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from labs_helpers.communication.buckets import MEGABYTE, fill_buckets
from labs_helpers.communication.weak_hooks import hook_gradient
from labs_helpers.data_parallel.ddp.base import broadcast
from labs_helpers.data_parallel.zero.bucket import Bucket
from labs_helpers.data_parallel.zero.gather import ParameterGather
from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer

REDUCTIONS = ("reduce_scatter", "all_reduce")


class ZeRO1(ShardedOptimizer):
    """Shard the optimizer states; arguments as for ShardedOptimizer, and the following.

    reduction: one of REDUCTIONS. bucket_mb: maximum size of a bucket in MiB; a bucket is sent during the backward pass
    as soon as it is full. overlap_gather: updated parameters arrive during the next forward pass; for its requirements
    see `gather.ParameterGather`.

    After a pass, p.grad is a view of the bucket. With "all_reduce" it is the mean. With "reduce_scatter" it is
    undefined, and a second pass outside no_sync() raises RuntimeError, because it would add to gradients already
    reduced.
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: Any,
        params: Any = None,
        *,
        reduction: str = "reduce_scatter",
        bucket_mb: float = 50,
        overlap_gather: bool = False,
        **settings: Any,
    ) -> None:
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction is {reduction!r}; it must be one of {', '.join(REDUCTIONS)}")
        if settings.get("offload") == "parameters" or settings.get("device") is not None:
            raise ValueError(
                "before stage 3, parameters stay where the model has them: offload and device cannot move them"
            )
        self.reduction, self.bucket_bytes = reduction, bucket_mb * MEGABYTE
        self.arrangement = f"reduction={reduction}, bucket_mb={bucket_mb}, overlap_gather={overlap_gather}"
        self.gather = ParameterGather(model, overlap_gather)
        self.reduced = 0  # buckets sent in this pass, in an order that is the same on all ranks
        super().__init__(model, optimizer, params, **settings)
        placed = {p for bucket in self.buckets for p in bucket.parameters}
        frozen = [p for p in self.groups.names if p not in placed]
        broadcast([*frozen, *model.buffers()], self.group)
        for p in frozen:
            if p.is_floating_point() and self.settings.compute_dtype is not None:
                p.data = p.data.to(self.settings.compute_dtype)

    def _place(self, parameters: list[nn.Parameter]) -> None:
        new = {p for p in parameters if p.requires_grad} - {p for bucket in self.buckets for p in bucket.parameters}
        # Gradients arrive from the last layer to the first. In this order, the first bucket fills early.
        backward_order = [p for p in reversed(self.groups.names) if p in new]
        for some in fill_buckets(backward_order, self.bucket_bytes):
            self.hooks += [hook_gradient(p, self._arrived, len(self.buckets)) for p in some]
            self.buckets.append(Bucket(some, self.group, self.settings))
        self.gather.follow(self.buckets)

    def _begin_pass(self) -> None:
        self.reduced = 0
        for bucket in self.buckets:
            bucket.awaited = sum(p.requires_grad for p in bucket.parameters)

    def _arrived(self, number: int, parameter: nn.Parameter) -> None:
        self.passes.begin()
        self.buckets[number].awaited -= 1
        while self.passes.sending and self.reduced < len(self.buckets) and self.buckets[self.reduced].awaited == 0:
            self._reduce_next()

    def _reduce_next(self) -> None:
        self._reduce(self.buckets[self.reduced])
        self.reduced += 1

    def _send_the_rest(self) -> None:
        while self.reduced < len(self.buckets):  # not full: some parameters were not used
            self._reduce_next()
        self._await()

    def _reduce(self, bucket: Bucket) -> None:
        """Start to average a bucket's gradients, which stay whole in `bucket.gradient`."""
        if bucket.gradient is not None and self.reduction == "reduce_scatter":
            there = bucket.gradient.untyped_storage().data_ptr()
            if any(p.grad is not None and p.grad.untyped_storage().data_ptr() == there for p in bucket.parameters):
                raise RuntimeError("a second backward pass since zero_grad(): run all but the last inside no_sync()")
        flat = bucket.gradient = bucket.collect(bucket.gradient, keep=True)
        bucket.gradient_shard = bucket.layout.shard(flat, self.group.rank)
        if self.reduction == "all_reduce":
            bucket.pending = self.group.start_mean(flat)
        else:
            bucket.pending = self.group.start_mean_shard(bucket.gradient_shard, flat)

    def _await(self) -> None:
        for bucket in self.buckets:
            if bucket.pending is not None:
                bucket.pending.wait()
                bucket.pending = None

    def _end_pass(self) -> None:
        super()._end_pass()
        for bucket in self.buckets if self.passes.sending else []:
            for p, used in zip(bucket.parameters, bucket.used, strict=True):
                p.grad = p.grad if used else None

    def remove(self) -> None:
        super().remove()
        self.gather.remove()

    def settle(self) -> None:
        """Wait, with overlap_gather, until all updated parameters have arrived."""
        self.gather.wait()

    def step(self) -> None:
        super().step()
        self.gather.start()
