"""The norm of gradients that no rank has whole, and clipping by it."""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer


@torch.no_grad()
def gradient_norm(zero: ShardedOptimizer) -> Tensor:
    """The norm of the whole mean gradient, (), the same on all ranks; on the device, where nothing waits for it. Added
    up in float32 at least. The shards have 0 between the parameters and for those without a gradient."""
    shards = [b.gradient_shard for b in zero.buckets if b.gradient_shard is not None]
    if not shards:
        raise RuntimeError("there are no gradients: the norm comes after backward() and before zero_grad()")
    wide = torch.float64 if any(s.dtype == torch.float64 for s in shards) else torch.float32
    norms = torch.stack(torch._foreach_norm(shards, 2, dtype=wide))
    return zero.group.all_reduce(norms.square().sum(), in_place=True).sqrt()


@torch.no_grad()
def clip_gradients(zero: ShardedOptimizer, max_norm: float) -> Tensor:
    """Scales the shards so that the norm of the whole mean gradient is at most `max_norm`; returns the norm it was, ().
    As torch.nn.utils.clip_grad_norm_, whose arithmetic it has: after backward(), before step(). (Stage 1's p.grad
    stay.)"""
    norm = gradient_norm(zero)
    shards = [b.gradient_shard for b in zero.buckets if b.gradient_shard is not None]
    torch._foreach_mul_(shards, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm
