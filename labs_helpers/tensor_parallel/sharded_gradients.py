"""Sum and clip the gradients of a sharded model over its tensor-parallel group."""

from __future__ import annotations

import torch
from torch import nn

from labs_helpers.communication import Communication
from labs_helpers.tensor_parallel.state import split_dims


def sum_partial_gradients(model: nn.Module, group: Communication) -> None:
    """Sum the gradients of the parameters that every tensor-parallel rank holds whole.

    Call this only under sequence parallelism, where each rank's norms have seen only its part of the sequence, and
    after `finish()`. Without sequence parallelism these gradients are already complete. Makes one all-reduce.
    """
    dims = split_dims(model)
    whole = [p for name, p in model.named_parameters() if dims[name] is None and p.grad is not None]
    if not whole:
        return
    total = group.all_reduce(torch.cat([p.grad.flatten() for p in whole if p.grad is not None]))
    for p, gradient in zip(whole, total.split([p.numel() for p in whole]), strict=True):
        assert p.grad is not None
        p.grad.copy_(gradient.view_as(p))


def clip_gradients(model: nn.Module, group: Communication, max_norm: float) -> float:
    """Scale the gradients so that their norm over the whole model is at most `max_norm`; return the norm before.

    Squares of split parameters are summed over the tensor-parallel group; squares of whole parameters count once.
    """
    dims = split_dims(model)
    squares = torch.zeros(2, dtype=torch.float64)
    for name, p in model.named_parameters():
        if p.grad is not None:
            squares[int(dims[name] is None)] += p.grad.double().square().sum().cpu()
    device = next(model.parameters()).device
    split = group.all_reduce(squares[:1].to(device)).item()
    norm = float((split + squares[1].item()) ** 0.5)
    for p in model.parameters():
        if p.grad is not None:
            p.grad.mul_(min(1.0, max_norm / (norm + 1e-6)))
    return norm
