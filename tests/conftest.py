"""Before any test imports Triton: interpreter or compiler, as this machine has it."""

import functools
import inspect
from types import SimpleNamespace

from labs_helpers.measure.machine import prepare_triton


def remember_builtins():
    """Triton's interpreter goes through all names of its language whenever a function of a kernel is called, which is a
    quarter of a kernel's time; here it goes through the builtins among them, which stay the same."""
    from triton.runtime import interpreter

    @functools.cache
    def builtins(package):
        return [name for name, member in inspect.getmembers(package) if interpreter.tl.core.is_builtin(member)]

    if hasattr(interpreter, "_patch_builtin"):
        quick = {"getmembers": lambda package: [(name, getattr(package, name)) for name in builtins(package)]}
        interpreter.inspect = SimpleNamespace(**vars(inspect) | quick)


if prepare_triton():
    remember_builtins()
