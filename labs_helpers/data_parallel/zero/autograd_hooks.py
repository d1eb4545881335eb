"""Being told when backward reaches a module, and when it has passed it, whatever the module takes and returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten


def in_backward() -> bool:
    """Whether a backward pass is running in this thread. A module called then is a checkpointed part, computed
    again."""
    return torch._C._current_graph_task_id() != -1


def before_backward(output: Any, then: Callable[[], None]) -> bool:
    """Has `then` called for each tensor in `output` before backward goes on from its gradient into the module. False
    where that is not certain: no tensor in it has a way back, or one is a view, whose hook is lost when it is written
    to."""
    tensors = [x for x in tree_leaves(output) if isinstance(x, Tensor) and x.requires_grad]
    for x in tensors:
        x.register_hook(lambda gradient: then())
    return bool(tensors) and not any(x._is_view() for x in tensors)


def after_backward(arguments: Any, then: Callable[[], None]) -> Any:
    """The arguments of a module, with which `then` is called when backward has passed it; never where no tensor among
    them has a way back. For autograd goes by age, and what the module computes from these arguments is younger than
    they are."""
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
