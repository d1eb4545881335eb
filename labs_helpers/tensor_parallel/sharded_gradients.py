"""Sum and clip the gradients of a sharded model over its tensor-parallel group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from labs_helpers.communication import Communication
from labs_helpers.tensor_parallel.state import split_dims


class Gradient(NamedTuple):
    """The gradient of a parameter, or of a part of it that this rank updates.

    split: every tensor-parallel rank has its own part; else all have the same. counted: whether it counts in the norm;
    of a weight with copies in two pipeline stages, only one copy counts.
    """

    tensor: Tensor
    split: bool
    counted: bool = True


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


def clip_gradients(
    gradients: Sequence[Gradient], group: Communication, max_norm: float, others: Sequence[Communication] = ()
) -> float:
    """Scale the gradients so that their norm over the whole model is at most `max_norm`; return the norm before.

    Squares of split gradients are summed over the tensor-parallel group; those of whole ones count once. others: groups
    whose ranks hold different parts of the model, such as pipeline stages; the squares are summed over each.
    """
    squares = torch.zeros(2, dtype=torch.float64)
    for gradient in gradients:
        if gradient.counted:
            squares[int(not gradient.split)] += gradient.tensor.double().square().sum().cpu()
    device = gradients[0].tensor.device
    total = group.all_reduce(squares[:1].to(device)).item() + squares[1].item()
    for other in others:
        total = other.all_reduce(torch.tensor([total], dtype=torch.float64, device=device)).item()
    norm = float(total**0.5)
    for gradient in gradients:
        gradient.tensor.mul_(min(1.0, max_norm / (norm + 1e-6)))
    return norm
