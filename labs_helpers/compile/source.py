"""Collect the source of a function and of everything it calls, as one module.

A function written in a notebook cell is in no file. To compile its kernel for another GPU, another process has to
import it, so its source travels. (To call a function in another process, pickle it: see pickled.py.)
"""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable
from types import CodeType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

_CONSTANTS = (int, str, bool, type(None))
# Cached, because a check asks a dozen times, and Python tokenizes the text to find a function's end.
_texts: WeakKeyDictionary[FunctionType, str] = WeakKeyDictionary()
_of_definitions: WeakKeyDictionary[FunctionType, dict[str, None]] = WeakKeyDictionary()


def plain(function: Any) -> Any:
    """Return the Python function inside a `@triton.jit` function, with or without `@triton.autotune`; any other
    function unchanged.

    as_text: return the function that an object calls in another process, to be read rather than called.
    """
    inner = function
    while not isinstance(inner, FunctionType) and (hasattr(inner, "fn") or hasattr(inner, "as_text")):
        inner = inner.fn if hasattr(inner, "fn") else inner.as_text
    return inner if isinstance(inner, FunctionType) else function


def is_kernel(function: object) -> bool:
    """Return True if `function` is decorated with `@triton.jit`, compiled or interpreted."""
    return isinstance(getattr(function, "fn", None), FunctionType)


def source_of(function: Callable[..., Any]) -> str:
    """Return the text of one function, decorators included. Raises OSError, naming the function, if there is none."""
    inner = plain(function)
    known = isinstance(inner, FunctionType)
    if known and inner in _texts:
        return _texts[inner]
    try:
        text = textwrap.dedent(inspect.getsource(inner))
    except (OSError, TypeError) as error:
        name = getattr(inner, "__name__", repr(function))
        raise OSError(f"the source of {name} cannot be found: define it in a cell or a file") from error
    if known:
        _texts[inner] = text
    return text


def names_used(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the outside names that `function` refers to: name → value. This includes closures, and names that only
    its comprehensions, lambdas, inner functions, decorators, defaults or annotations use."""
    inner = plain(function)
    names = _names_in(inner.__code__) | names_of_definition(inner)
    used = {name: inner.__globals__[name] for name in names if name in inner.__globals__}
    return {**used, **inspect.getclosurevars(inner).nonlocals}


def names_of_definition(function: FunctionType) -> dict[str, None]:
    """Return the names that Python evaluates while it defines `function`, outside its body; empty if its text is
    unknown."""
    if function not in _of_definitions:
        _of_definitions[function] = _names_of_definition(function)
    return _of_definitions[function]


def _names_of_definition(function: FunctionType) -> dict[str, None]:
    try:
        definition = ast.parse(source_of(function)).body[0]
    except (OSError, SyntaxError):  # the text of a lambda inside a line
        return {}
    if not isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        return {}
    parts = [*definition.decorator_list, definition.args, *([definition.returns] if definition.returns else [])]
    return {node.id: None for part in parts for node in ast.walk(part) if isinstance(node, ast.Name)}


def _names_in(code: CodeType) -> dict[str, None]:
    """Return the names looked up in a code object and in those inside it, in the order of the text."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names.update(_names_in(constant))
    return names


def reachable(function: Callable[..., Any]) -> dict[str, Any]:
    """Return `function` and every function of the same file that it calls, callees first, by name."""
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


def full_source(function: Callable[..., Any]) -> str:
    """Return the text of `function` and of every function of the same file that it calls, callees first."""
    return "\n\n".join(source_of(part) for part in reachable(function).values())


def portable_kernel(kernel: Any) -> str:
    """Return a module that defines a kernel and everything it needs: Triton, constants, jitted helpers.

    A Triton whose process imports neither torch nor this course can compile it.
    """
    imports: set[str] = {"import triton"}
    constants: dict[str, str] = {}
    bodies: dict[str, str] = {}

    def visit(name: str, current: Callable[..., Any]) -> None:
        if name in bodies:
            return
        bodies[name] = ""
        for used, value in names_used(current).items():
            if isinstance(value, ModuleType):
                if value.__name__.split(".")[0] == "triton":
                    imports.add(f"import {value.__name__} as {used}")
            elif text := _literal(value):
                constants[used] = text
            elif place := _place_in_triton(value):
                imports.add(f"from {place[0]} import {place[1]} as {used}")
            elif is_kernel(value):
                visit(used, value)
        bodies[name] = bodies.pop(name) or _jitted_source(current, name)

    visit(plain(kernel).__name__, kernel)
    lines = sorted(imports) + [f"{name} = {text}" for name, text in constants.items()]
    return "\n".join(lines) + "\n\n\n" + "\n\n".join(bodies.values())


def _place_in_triton(value: Any) -> tuple[str, str] | None:
    """Return (module, name) of an object that Triton defines. Its interpreter replaces the language's names with its
    own functions, whose attributes do not reveal the original place."""
    for module in ("triton.language", "triton.language.math", "triton"):
        for name, other in vars(sys.modules.get(module, object)).items():
            if other is value:
                return module, name
    home, name = getattr(plain(value), "__module__", None) or "", getattr(plain(value), "__qualname__", "")
    return (home, name) if home.startswith("triton.") and name.isidentifier() else None


def _jitted_source(kernel: Any, name: str) -> str:
    """Return the kernel's text under `name`, with `triton.jit` as its only decorator; a tuner would measure."""
    text = source_of(kernel)
    definition = ast.parse(text).body[0]
    assert isinstance(definition, ast.FunctionDef)
    decorators = [ast.get_source_segment(text, node) or "" for node in definition.decorator_list]
    jit = next((word for word in decorators if word.partition("(")[0].endswith("jit")), "triton.jit")
    lines = "".join(text.splitlines(keepends=True)[definition.lineno - 1 :])
    return f"@{jit}\n{lines}" + (f"\n\n{name} = {definition.name}\n" if name != definition.name else "")


def _literal(value: Any) -> str:
    """Return an expression for a kernel's constant, or '' if it has none. Infinities and NaN have no literal."""
    if isinstance(value, float):
        return f"float({str(value)!r})"
    if isinstance(value, tuple):
        parts = [_literal(part) for part in value]
        return f"({', '.join(parts)}{',' * (len(parts) == 1)})" if all(parts) else ""
    if type(value).__name__ == "constexpr":
        return f"triton.language.constexpr({text})" if (text := _literal(value.value)) else ""
    if type(value).__module__ == "triton.language.core" and type(value).__name__ == "dtype":  # inside a constexpr
        return f"triton.language.dtype({value.name!r})"
    return repr(value) if isinstance(value, _CONSTANTS) else ""
