"""Before any test imports Triton: interpreter or compiler, as this machine has it."""

import functools
import inspect
from types import SimpleNamespace

from labs_helpers.measure.machine import prepare_triton


def quicken_the_interpreter():
    """Leave out what Triton's interpreter does again and again to no effect, which is half of a kernel's time.

    It goes through all names of its language whenever a function of a kernel is called: here through the builtins
    among them, which stay the same. It works every integer operation out a second time in 64 bits, for an assertion
    that is made only where its option `debug` is set. It makes a table of all dtypes whenever it looks one up.
    """
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    @functools.cache
    def builtins(package):
        return [name for name, member in inspect.getmembers(package) if interpreter.tl.core.is_builtin(member)]

    def members(package):
        found = [(name, getattr(package, name)) for name in builtins(package)]
        replaced = found and not interpreter.tl.core.is_builtin(found[0][1])  # by the call that this one is within
        return [] if replaced else found

    if hasattr(interpreter, "_patch_builtin"):
        interpreter.inspect = SimpleNamespace(**vars(inspect) | {"getmembers": members})
    if not interpreter.interpreter_builder.options.debug:
        TritonSemantic.binary_op_sanitize_overflow_impl = lambda *operation: None
    look_up = interpreter._get_np_dtype
    of_scalars = functools.cache(look_up)
    interpreter._get_np_dtype = lambda dtype: (look_up if dtype.scalar.is_ptr() else of_scalars)(dtype.scalar)


if prepare_triton():
    quicken_the_interpreter()
