"""Pickle a notebook's function with everything it refers to, for a process in which Triton interprets kernels.

Definitions from modules of the course or of installed packages travel by name. Definitions from cells travel by value:
code, defaults, closures, and the global variables that the code looks up.
"""

from __future__ import annotations

import dis
import io
import sys
from collections.abc import Callable, Iterable
from types import CodeType, FunctionType
from typing import Any

import cloudpickle

from labs_helpers.compile.source import names_of_definition, names_used, plain, reachable


def pickled(function: Callable, *values: Any) -> bytes:
    """Return `(function, *values)` for `pickle.loads`. Kernels are jitted again there; a GPU's tensors arrive in main
    memory.

    Raises TypeError, which names the parts of `function` that cannot be sent.
    """
    stream = io.BytesIO()
    try:
        _Pickler(stream).dump((function, *values))
    except Exception as error:
        raise TypeError(f"{type(error).__name__}: {error}\n{cannot_be_sent(function)}") from error
    return stream.getvalue()


def cannot_be_sent(function: Callable) -> str:
    """Return the sentence for a function that cannot be pickled: which of the names it uses are the cause."""
    names = []
    for part in reachable(function).values():
        for name, value in names_used(part).items():
            try:
                _Pickler(io.BytesIO()).dump(value)
            except Exception:  # any error means that this value cannot travel
                names.append(f"`{name}`")
    what = ", ".join(dict.fromkeys(names)) or "something"
    return (
        f"`{getattr(plain(function), '__name__', function)}` is sent to another process with all that it refers to, "
        f"and {what} cannot be sent: keep no lock, open file, communicator or request in a global variable."
    )


class _Pickler(cloudpickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(getattr(value, "fn", None), FunctionType) and type(value).__module__.startswith("triton."):
            return _reduced_kernel(value)
        torch = sys.modules.get("torch")
        if torch is not None and isinstance(value, torch.Tensor) and value.is_cuda:
            return value.cpu().__reduce_ex__(self.proto)
        reduced = super().reducer_override(value)
        if isinstance(value, FunctionType) and isinstance(reduced, tuple) and len(reduced) > 2:  # by value
            found = {
                name: value.__globals__[name] for name in _names_in_classes(value.__code__) & value.__globals__.keys()
            }
            reduced[2][1]["__globals__"].update(found)
        return reduced


def _names_in_classes(code: CodeType, inner: bool = False) -> set[str]:
    """Return the names that class bodies inside a function look up, since cloudpickle only examines functions."""
    found = {step.argval for step in dis.get_instructions(code) if inner and step.opname == "LOAD_NAME"}
    return found.union(*(_names_in_classes(part, True) for part in code.co_consts if isinstance(part, CodeType)))


def _reduced_kernel(kernel: Any) -> tuple[Callable, tuple]:
    module, name = kernel.fn.__module__, kernel.fn.__qualname__
    if module != "__main__" and getattr(sys.modules.get(module), name, None) is kernel:
        return _by_name, (module, name)
    return _jitted, (kernel.fn, _found(kernel.fn, names_of_definition(kernel.fn)))


def _found(function: FunctionType, names: Iterable[str]) -> dict[str, Any]:
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _by_name(module: str, name: str) -> Any:
    import importlib

    return getattr(importlib.import_module(module), name)


def _jitted(function: FunctionType, names: dict[str, Any]) -> Any:
    """Jit a function again. names: what the interpreter looks up while it defines the function."""
    import triton

    function.__globals__.update(names)
    return triton.jit(function)
