"""The source of a function together with everything it calls, as one module.

A function written in a notebook cell lives in no file. To compile its kernel for another GPU, or to run it
in Triton's interpreter while this process drives a real GPU, another process has to import it: so its
source travels.
"""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any

_CONSTANTS = (int, float, str, bool, type(None))


def plain(function: Any) -> Any:
    """The Python function inside a `@triton.jit` function, `@triton.autotune` round it or not; any other as it is."""
    inner = function
    while not isinstance(inner, FunctionType) and hasattr(inner, "fn"):
        inner = inner.fn
    return inner if isinstance(inner, FunctionType) else function


def is_kernel(function: object) -> bool:
    """Whether `function` is decorated with `@triton.jit` (compiled or interpreted)."""
    return isinstance(getattr(function, "fn", None), FunctionType)


def source_of(function: Callable[..., Any]) -> str:
    """The text of one function, decorators included. OSError, naming it, when there is none."""
    try:
        return textwrap.dedent(inspect.getsource(plain(function)))
    except (OSError, TypeError) as error:
        name = getattr(plain(function), "__name__", repr(function))
        raise OSError(f"the source of {name} cannot be found: define it in a cell or a file") from error


def names_used(function: Callable[..., Any]) -> dict[str, Any]:
    """What `function` refers to outside itself: name → value, closures included, and what only a comprehension, a
    lambda or an inner function of it uses."""
    inner = plain(function)
    used = {name: inner.__globals__[name] for name in _names_in(inner.__code__) if name in inner.__globals__}
    used.update(inspect.getclosurevars(inner).nonlocals)
    # Decorators, annotations and defaults are evaluated outside the body, so they are not in its names.
    for name in ("torch", "triton", "tl"):
        if isinstance(inner.__globals__.get(name), ModuleType):
            used[name] = inner.__globals__[name]
    return used


def _names_in(code: CodeType) -> dict[str, None]:
    """The names that are looked up in a code object and in those inside it, in the order of the text."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(_names_in(constant))
    return names


def reachable(function: Callable[..., Any]) -> dict[str, Any]:
    """`function` and every function of the same file that it calls, callees first, by their names."""
    home = plain(function).__code__.co_filename
    found: dict[str, Any] = {}

    def visit(current: Callable[..., Any]) -> None:
        for value in names_used(current).values():
            callee = plain(value)
            if isinstance(callee, FunctionType) and callee.__code__.co_filename == home:
                if callee.__name__ not in found and callee is not plain(function):
                    found[callee.__name__] = value
                    visit(value)

    visit(function)
    ordered = dict(reversed(found.items()))
    return {**ordered, plain(function).__name__: function}


def portable_source(function: Callable[..., Any], kernels_only: bool = False) -> str:
    """A module that defines `function` and all it needs: imports, constants, helpers.

    With `kernels_only` just what a kernel needs (Triton, constants, jitted helpers), so that it can be
    compiled by a Triton whose process imports neither torch nor this course.
    """
    imports: set[str] = set()
    constants: dict[str, str] = {}
    bodies: dict[str, str] = {}

    def visit(name: str, current: Callable[..., Any]) -> None:
        if name in bodies:
            return
        bodies[name] = ""
        for used, value in names_used(current).items():
            if isinstance(value, ModuleType):
                if not kernels_only or value.__name__.split(".")[0] == "triton":
                    imports.add(f"import {value.__name__} as {used}")
            elif isinstance(plain(value), FunctionType) and (is_kernel(value) or not _importable(value)):
                if is_kernel(value) and value.fn.__module__.startswith("triton."):
                    imports.add(f"from {value.fn.__module__} import {value.fn.__name__} as {used}")
                else:
                    visit(used, value)
            elif isinstance(value, _CONSTANTS) and not used.startswith("__"):
                constants[used] = repr(value)
            elif type(value).__name__ == "constexpr":
                constants[used] = f"tl.constexpr({value.value!r})"
            elif hasattr(value, "__module__") and hasattr(value, "__qualname__") and not kernels_only:
                imports.add(f"from {value.__module__} import {value.__qualname__} as {used}")
        bodies[name] = bodies.pop(name) or source_of(current)

    visit(plain(function).__name__, function)
    lines = sorted(imports) + [f"{name} = {text}" for name, text in constants.items()]
    return "\n".join(lines) + "\n\n\n" + "\n\n".join(bodies.values())


def _importable(function: Callable[..., Any]) -> bool:
    """Whether another process finds this function under its module's name (a cell's it does not)."""
    module = plain(function).__module__ or ""
    return module.startswith(("labs_helpers.", "torch", "triton.", "numpy", "math"))
