"""Compute the norm of gradients that no rank holds whole, and clip by it."""

from __future__ import annotations

import torch
from torch import Tensor

from labs_helpers.data_parallel.zero.optimizer import ShardedOptimizer


@torch.no_grad()
def gradient_norm(zero: ShardedOptimizer) -> Tensor:
    """Return the norm of the whole mean gradient, (), identical on all ranks, without waiting for the device.

    It is summed in float32 or wider. The shards contain zeros between the parameters and for missing gradients.
    """
    shards = [b.gradient_shard for b in zero.buckets if b.gradient_shard is not None]
    if not shards:
        raise RuntimeError("there are no gradients: compute the norm after backward() and before zero_grad()")
    wide = torch.float64 if any(s.dtype == torch.float64 for s in shards) else torch.float32
    norms = torch.stack(torch._foreach_norm(shards, 2, dtype=wide))
    return zero.group.all_reduce(norms.square().sum(), in_place=True).sqrt()


@torch.no_grad()
def clip_gradients(zero: ShardedOptimizer, max_norm: float) -> Tensor:
    """Scale the shards to a norm of the whole mean gradient of at most `max_norm`; return the original norm, ().

    Same arithmetic as torch.nn.utils.clip_grad_norm_. Call it after backward() and before step(). Stage 1's p.grad are
    not scaled.
    """
    norm = gradient_norm(zero)
    shards = [b.gradient_shard for b in zero.buckets if b.gradient_shard is not None]
    torch._foreach_mul_(shards, (max_norm / (norm + 1e-6)).clamp(max=1.0))
    return norm
