"""What a sharded model's gradients need of the tensor-parallel group: sums of parts, and one norm for all."""

from __future__ import annotations

import torch
from torch import nn

from labs_helpers.communication import Communication
from labs_helpers.tensor_parallel.state import split_dims


def sum_partial_gradients(model: nn.Module, group: Communication) -> None:
    """Under sequence parallelism: sums the gradients of parameters that every tensor-parallel rank holds whole.

    Each rank's norms have seen its part of the sequence only. (Without sequence parallelism they have seen all of it,
    and their gradients are right as they are: not to be called.) One all-reduce for all of them; after `finish()`.
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
    """Scales the gradients so that the norm of the whole model's is at most `max_norm`; returns the norm it was.

    The squares of split parameters are summed over the tensor-parallel group, those of whole ones are counted once.
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
