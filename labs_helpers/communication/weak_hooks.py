"""Gradient hooks that do not keep the wrapper that registers them alive.

A parameter holds its gradient hooks from C++, where Python's garbage collector does not look. If a hook referred to a
wrapper that refers to the parameter, the wrapper, its model and their memory would stay until the process ends. So a
hook holds its wrapper by a weak reference, and disappears with it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle


class WeakHook:
    """Calls `method(*first, *arguments)` while the method's object lives; afterwards it does nothing and returns None.

    first: held strongly, so it must not lead to a parameter. Numbers are safe.
    """

    def __init__(self, method: Callable[..., Any], *first: Any) -> None:
        self.method, self.first = weakref.WeakMethod(method), first

    @property
    def owner(self) -> object | None:
        method = self.method()
        return None if method is None else getattr(method, "__self__", None)

    def __call__(self, *arguments: Any) -> Any:
        method = self.method()
        return None if method is None else method(*self.first, *arguments)


def hook_gradient(parameter: nn.Parameter, method: Callable[..., Any], *first: Any) -> RemovableHandle:
    """Call `method(*first, parameter)` whenever the parameter's gradient is complete, until the handle is removed or
    the method's object is gone."""
    hook = WeakHook(method, *first)
    handle = parameter.register_post_accumulate_grad_hook(hook)
    weakref.finalize(hook.owner, handle.remove)
    return handle


def check_unhooked(parameters: Iterable[nn.Parameter]) -> None:
    """Raise RuntimeError for parameters whose gradients another wrapper averages; they would be averaged twice."""
    for p in parameters:
        hooks = (getattr(p, "_post_accumulate_grad_hooks", None) or {}).values()
        if any(isinstance(hook, WeakHook) and hook.owner is not None for hook in hooks):
            raise RuntimeError("these gradients are averaged already: remove() the wrapper before you make another")
