"""Triton's interpreter without what it does again and again to no effect, which is half of a small kernel's time.

For programs that run many kernels in it, such as tests and grading. It gives the same values.
"""

from __future__ import annotations

import functools
import inspect
from types import SimpleNamespace
from typing import Any


def quicken() -> None:
    """Patches the interpreter of Triton 3.6 and 3.7; others are left as they are. Imports Triton, so that
    `prepare_triton` has to have chosen the interpreter. Twice is harmless."""
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    if hasattr(interpreter, "_patch_builtin") and interpreter.inspect is inspect:
        _remember_builtins(interpreter)
    # It works every integer operation out a second time in 64 bits, for an assertion that is made where `debug` is set.
    options = getattr(interpreter.interpreter_builder, "options", None)
    if hasattr(TritonSemantic, "binary_op_sanitize_overflow_impl") and not getattr(options, "debug", True):
        TritonSemantic.binary_op_sanitize_overflow_impl = lambda *operation: None
    if hasattr(interpreter, "_get_np_dtype") and not hasattr(interpreter._get_np_dtype, "quick"):
        _remember_dtypes(interpreter)


def _remember_builtins(interpreter: Any) -> None:
    """It goes through all names of its language whenever a function of a kernel is called: now through the builtins
    among them, which stay the same."""

    @functools.cache
    def builtins(package: Any) -> list[str]:
        return [name for name, member in inspect.getmembers(package) if interpreter.tl.core.is_builtin(member)]

    def members(package: Any) -> list[tuple[str, Any]]:
        found = [(name, getattr(package, name)) for name in builtins(package)]
        replaced = found and not interpreter.tl.core.is_builtin(found[0][1])  # by the call that this one is within
        return [] if replaced else found

    interpreter.inspect = SimpleNamespace(**vars(inspect) | {"getmembers": members})


def _remember_dtypes(interpreter: Any) -> None:
    """It makes a table of all dtypes whenever it looks one up."""
    look_up = interpreter._get_np_dtype
    of_scalars = functools.cache(look_up)

    def quick(dtype: Any) -> Any:
        return (look_up if dtype.scalar.is_ptr() else of_scalars)(dtype.scalar)

    quick.quick = True  # type: ignore[attr-defined]
    interpreter._get_np_dtype = quick
