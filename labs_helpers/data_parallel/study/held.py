"""Count the bytes of states on a rank for replicas and for PyTorch's sharded models."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor import DTensor

from labs_helpers.data_parallel.zero.memory import PARTS


def plain_bytes(model: torch.nn.Module, optimizer: Any, buffers: Iterable[Tensor] = ()) -> dict[str, int]:
    """Return the bytes of PARTS on this rank, counting each storage once. buffers: memory reserved for gradients."""
    inner = optimizer.optim if isinstance(optimizer, ZeroRedundancyOptimizer) else optimizer
    states = [t for state in inner.state.values() for t in state.values() if isinstance(t, Tensor) and t.ndim]
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    seen: set[int] = set()

    def count(tensors: Iterable[Tensor]) -> int:
        total = 0
        for t in tensors:
            storage = (t.to_local() if isinstance(t, DTensor) else t).untyped_storage()
            if storage.data_ptr() not in seen:
                seen.add(storage.data_ptr())
                total += storage.nbytes()
        return total

    parts: tuple[Iterable[Tensor], ...] = (list(model.parameters()), [*buffers, *gradients], states)
    return dict(zip(PARTS, map(count, parts), strict=True))
