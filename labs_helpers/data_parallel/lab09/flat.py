"""A model's parameters in flat memory, and the memory that tensors occupy."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


@torch.no_grad()
def flatten(parameters: Iterable[torch.nn.Parameter], ranks: int) -> Tensor:
    """Return (n,), the parameters one after another, padded to a multiple of `ranks`. They become views of it."""
    parameters = list(parameters)
    total = sum(p.numel() for p in parameters)
    whole = parameters[0].new_zeros(-(-total // ranks) * ranks)
    at = 0
    for p in parameters:
        view = whole[at : at + p.numel()].view(p.shape)
        view.copy_(p)
        p.data = view
        at += p.numel()
    return whole


def flat_gradient(parameters: Iterable[torch.nn.Parameter], whole: Tensor) -> Tensor:
    """Return (n,) like `whole`: copies of the parameters' .grad one after another, then zeros."""
    flat, at = torch.zeros_like(whole), 0
    for p in parameters:
        flat[at : at + p.numel()] = p.grad.reshape(-1)
        at += p.numel()
    return flat


def held(tensors: Iterable[Tensor | None]) -> int:
    """Return the bytes of memory that the tensors occupy; several views of the same memory count once."""
    memory = {}
    for tensor in tensors:
        if tensor is not None:
            storage = tensor.untyped_storage()
            memory[storage.data_ptr()] = storage.nbytes()
    return sum(memory.values())


def states_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Return the optimizer's tensors with one number per element: moments, but not Adam's step count."""
    return [v for state in optimizer.state.values() for v in state.values() if isinstance(v, Tensor) and v.ndim]
