"""A model's parameters in flat memory, and how much memory stands behind tensors."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


@torch.no_grad()
def flatten(parameters: Iterable[torch.nn.Parameter], ranks: int) -> Tensor:
    """(n,): the parameters one behind the other, with padding to a multiple of `ranks`. They become views of it."""
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
    """(n,) like `whole`: the parameters' .grad one behind the other, and 0 behind them. They keep theirs."""
    flat, at = torch.zeros_like(whole), 0
    for p in parameters:
        flat[at : at + p.numel()] = p.grad.reshape(-1)
        at += p.numel()
    return flat


def held(tensors: Iterable[Tensor | None]) -> int:
    """Bytes of memory behind the tensors, each memory once, however many views of it there are."""
    memory = {}
    for tensor in tensors:
        if tensor is not None:
            storage = tensor.untyped_storage()
            memory[storage.data_ptr()] = storage.nbytes()
    return sum(memory.values())


def states_of(optimizer: torch.optim.Optimizer) -> list[Tensor]:
    """Its tensors with a number per element: moments, but not Adam's count of steps."""
    return [v for state in optimizer.state.values() for v in state.values() if isinstance(v, Tensor) and v.ndim]
