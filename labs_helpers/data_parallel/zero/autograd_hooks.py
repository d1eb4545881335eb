"""Hooks that run before and after a module's backward pass, whatever its inputs and outputs are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten


def in_backward() -> bool:
    """Return whether this thread is in a backward pass, where a module call recomputes a checkpoint."""
    return torch._C._current_graph_task_id() != -1


def before_backward(output: Any, then: Callable[[], None]) -> bool:
    """Call `then` for each tensor in `output` before backward continues from its gradient into the module.

    Return False if the call is not certain: no tensor in the output requires a gradient, or one is a view, which loses
    its hook when it is written to.
    """
    tensors = [x for x in tree_leaves(output) if isinstance(x, Tensor) and x.requires_grad]
    for x in tensors:
        x.register_hook(lambda gradient: then())
    return bool(tensors) and not any(x._is_view() for x in tensors)


def after_backward(arguments: Any, then: Callable[[], None]) -> Any:
    """Return the arguments for a module such that autograd calls `then` after the module's backward pass.

    It never does if no tensor among them requires a gradient. Autograd processes newer nodes first, and everything that
    the module computes from these arguments is newer than they are.
    """
    leaves, form = tree_flatten(arguments)
    places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor) and x.requires_grad]
    if places:
        passed = _Identity.apply(then, *[leaves[i] for i in places])
        for i, x in zip(places, passed, strict=True):
            leaves[i] = x
    return tree_unflatten(leaves, form)


class _Identity(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, then: Callable[[], None], *inputs: Tensor) -> tuple[Tensor, ...]:
        ctx.then = then
        ctx.set_materialize_grads(False)  # no zeros for inputs without a gradient
        return inputs

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Tensor | None, ...]:
        ctx.then()
        return None, *gradients
