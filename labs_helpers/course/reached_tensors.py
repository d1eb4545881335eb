"""Find the tensors that functions hold between two calls: in closures, defaults, globals, lists and objects."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Iterator
from typing import Any

from torch import Tensor, nn


def tensors_reached(roots: Iterable[Any]) -> Iterator[Tensor]:
    """Walk a function's closure, defaults and globals and everything that these hold, except modules and objects of
    PyTorch and the course. A function in another process is asked for its tensors."""
    seen: set[int] = set()
    left = list(roots)
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if isinstance(one, Tensor):
            yield one
            if one.grad is not None:
                left.append(one.grad)
        elif hasattr(type(one), "reached"):
            left += one.reached()
        else:
            left += _inside(one)


def _inside(one: Any) -> list[Any]:
    if isinstance(one, types.FunctionType):
        named = (one.__globals__.get(name) for name in one.__code__.co_names)
        own = [x for x in named if not isinstance(x, types.FunctionType | types.ModuleType)]
        return [one.__closure__, one.__defaults__, one.__kwdefaults__, *own]
    kind = one if isinstance(one, type) else type(one)
    of_others = (kind.__module__ or "").partition(".")[0] in ("torch", "labs_helpers")
    if of_others or isinstance(one, types.ModuleType | nn.Module) or kind is one and kind.__module__ == "builtins":
        return []
    return gc.get_referents(one)  # of an iterator, too, or a generator
