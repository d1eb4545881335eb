"""What an answer keeps for itself: tensors that its functions reach through closures, lists and objects of its own."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AnySet
from typing import Any

from torch import Tensor, nn

CAUSE = (
    "whole gradients stay in a list or a buffer of your own: what is not in .grad any more has to be let go of as well"
)


def bytes_kept(functions: Iterable[Any], *given: Iterable[Tensor | None]) -> int:
    """Bytes of memory that `functions` hold on to from one call to the next, without that of `given`.

    Looked into are what a function closes over, its defaults, containers, partials, bound methods and objects of the
    answer's own classes; of globals the containers and tensors that the function names.
    """
    known = {x.untyped_storage().data_ptr() for tensors in given for x in tensors if x is not None}
    storages = {x.untyped_storage().data_ptr(): x.untyped_storage().nbytes() for x in _tensors(functions)}
    return sum(nbytes for address, nbytes in storages.items() if address not in known)


def hooks_of(parameters: Iterable[Tensor], *modules: nn.Module) -> list[Any]:
    """The hooks that are registered on them."""
    found = [hook for p in parameters for hook in (getattr(p, "_post_accumulate_grad_hooks", None) or {}).values()]
    for module in modules:
        for kind in ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks"):
            found += getattr(module, kind).values()
    return found


def _tensors(roots: Iterable[Any]) -> Iterator[Tensor]:
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
        else:
            left += _inside(one)


def _inside(one: Any) -> list[Any]:
    if isinstance(one, Mapping):
        return [*one.keys(), *one.values()]
    if isinstance(one, list | tuple | AnySet) or type(one).__name__ == "deque":
        return list(one)
    if isinstance(one, functools.partial):
        return [one.func, *one.args, *one.keywords.values()]
    if isinstance(one, types.MethodType):
        return [one.__func__, one.__self__]
    if isinstance(one, types.FunctionType):
        named = (one.__globals__.get(name) for name in one.__code__.co_names)
        own = [x for x in named if isinstance(x, list | dict | set | Tensor)]
        closed = [cell.cell_contents for cell in one.__closure__ or () if _filled(cell)]
        return [*closed, *(one.__defaults__ or ()), *own]
    module = type(one).__module__ or ""
    if hasattr(one, "__dict__") and not isinstance(one, type | types.ModuleType | nn.Module):
        if module.partition(".")[0] not in ("torch", "labs_helpers", "builtins"):
            return list(vars(one).values())
    return []


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:  # a name that nothing has been assigned to yet
        return False
    return True
