"""Speed up Triton's interpreter by removing work that it repeats to no effect, most of a small kernel's time.

Labs, tests and grading run many small kernels in it. The values stay the same.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any


def quicken() -> None:
    """Patch the interpreter of Triton 3.6 and 3.7, and leave other versions alone. This imports Triton, so call
    `prepare_triton` first. Repeating it is harmless."""
    from triton.language import core
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter

    if hasattr(interpreter, "_patch_builtin") and interpreter.inspect is inspect:
        _remember_builtins(interpreter)
    # It repeats every integer operation in 64 bits for an assertion that only `debug` enables.
    options = getattr(interpreter.interpreter_builder, "options", None)
    if hasattr(TritonSemantic, "binary_op_sanitize_overflow_impl") and not getattr(options, "debug", True):
        TritonSemantic.binary_op_sanitize_overflow_impl = lambda *operation: None
    if hasattr(interpreter, "_get_np_dtype") and not hasattr(interpreter._get_np_dtype, "quick"):
        _remember_dtypes(interpreter)
    if hasattr(interpreter, "_LangPatchScope") and not hasattr(core.block_type.__init__, "quick"):
        _patch_once(interpreter)
        _remember_shapes(core, TritonSemantic, interpreter.InterpreterBuilder)
        _remember_promotions(TritonSemantic)


def _quick(function: Callable[..., Any]) -> Any:
    """Mark a replaced function, so that a second `quicken` recognizes it."""
    function.quick = True  # type: ignore[attr-defined]
    return function


def _remember_builtins(interpreter: Any) -> None:
    """Cache the language's builtins. The interpreter searches all names of the language for them on every function
    call in a kernel."""

    @functools.cache
    def builtins(package: Any) -> list[str]:
        return [name for name, member in inspect.getmembers(package) if interpreter.tl.core.is_builtin(member)]

    def members(package: Any) -> list[tuple[str, Any]]:
        found = [(name, getattr(package, name)) for name in builtins(package)]
        replaced = found and not interpreter.tl.core.is_builtin(found[0][1])  # by the call that this one is within
        return [] if replaced else found

    interpreter.inspect = SimpleNamespace(**vars(inspect) | {"getmembers": members})


def _remember_dtypes(interpreter: Any) -> None:
    """Cache the table of dtypes, which the interpreter rebuilds at every lookup."""
    look_up = interpreter._get_np_dtype
    of_scalars = functools.cache(look_up)

    def quick(dtype: Any) -> Any:
        return (look_up if dtype.scalar.is_ptr() else of_scalars)(dtype.scalar)

    interpreter._get_np_dtype = _quick(quick)


def _patch_once(interpreter: Any) -> None:
    """Patch the language once. The interpreter replaces it for a kernel, and again for every function that the
    kernel calls, `tl.sum` included. This also passes a builtin's arguments through one call instead of two."""
    tl, core = interpreter.tl, interpreter.tl.core
    patch_all = interpreter._patch_lang

    def patched(language: Any) -> bool:
        return not core.is_builtin(language.load) and not core.is_builtin(language.reduce)

    def patch_lang(function: Any) -> Any:
        known = function.__globals__.values()
        languages = [language for language in (tl, core) if any(value is language for value in known)]
        shared = (core.tensor.__add__, core.reduce, tl.reduce)
        if (
            languages
            and core.dtype.to_ir is not to_ir
            and not any(map(core.is_builtin, shared))
            and all(map(patched, languages))
        ):
            return interpreter._LangPatchScope()
        return patch_all(function)  # which raises where the function sees no language

    def patch_attr(package: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
        function, semantic = getattr(member, "__wrapped__", member), interpreter.interpreter_semantic

        def called(*args: Any, **named: Any) -> Any:
            named["_semantic"] = semantic
            return function(*args, **named)

        scope.set_attr(package, name, called)

    to_ir = core.dtype.to_ir
    interpreter._patch_lang = patch_lang
    interpreter._patch_attr = patch_attr


def _remember_shapes(core: Any, semantic: Any, builder: Any) -> None:
    """Cache block types by shape and dtype. The interpreter validates and wraps the shape of every result. With the
    cache, blocks of one shape share an object, so an operation sees that it need not broadcast."""
    of_block, of_tensor, of_dtype, of_ir = (
        core.block_type.__init__,
        core.tensor.__init__,
        core.dtype.__eq__,
        core.block_type.to_ir,
    )
    broadcast_all = semantic.broadcast_impl_value
    blocks: dict[Any, dict[str, Any]] = {}
    shapes: dict[Any, Any] = {}

    def make_block(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = [size.value if isinstance(size, core.constexpr) else size for size in shape]
        name = getattr(element_ty, "name", None)
        if name is None or not {*map(type, sizes)} <= {int}:  # which it refuses
            return of_block(self, element_ty, shape)
        key = (name, getattr(element_ty, "address_space", None), *sizes)
        if (known := blocks.get(key)) is None:
            of_block(self, element_ty, shape)
            self.shape = shapes.setdefault(tuple(sizes), self.shape)
            one = object.__new__(core.tensor)
            of_tensor(one, None, self)
            known = blocks[key] = {**vars(self), "_of_tensors": vars(one)}
        self.__dict__.update(known)

    def make_tensor(self: Any, handle: Any, type: Any) -> None:
        if (known := type.__dict__.get("_of_tensors")) is None:
            of_tensor(self, handle, type)
            if not type.is_block():
                type._of_tensors = {**vars(self), "handle": None}
        else:
            self.__dict__.update(known)
            self.handle = handle

    def broadcast(self: Any, lhs: Any, rhs: Any) -> Any:
        one, other = lhs.type.__dict__.get("shape"), rhs.type.__dict__.get("shape")  # None: a scalar
        if one is other:
            return lhs, rhs
        if one is None or other is None or len(one) != len(other):
            return broadcast_all(self, lhs, rhs)
        pairs = list(zip(one, other, strict=True))
        if any(x != y and x != 1 and y != 1 for x, y in pairs):  # which it refuses
            return broadcast_all(self, lhs, rhs)
        shape = [y if x == 1 else x for x, y in pairs]
        wide = []
        for tensor, own in ((lhs, one), (rhs, other)):
            if list(own) != shape:
                block = core.block_type(tensor.type.scalar, shape)
                tensor = self.tensor(self.builder.create_broadcast(tensor.handle, shape), block)
            wide.append(tensor)
        return wide[0], wide[1]

    def to_ir(self: Any, target: Any) -> Any:
        """Return the interpreter's types, which are those of its language."""
        plain = isinstance(target, builder) and not self.element_ty.is_ptr()
        return self if plain else of_ir(self, target)

    core.block_type.__init__ = _quick(make_block)
    core.block_type.to_ir = to_ir
    core.tensor.__init__ = make_tensor
    core.dtype.__eq__ = lambda self, other: self is other or of_dtype(self, other)
    semantic.broadcast_impl_value = broadcast


def _remember_promotions(semantic: Any) -> None:
    """Cache the dtype of an operation's result for each pair of dtypes, which the interpreter computes whenever it
    adds two numbers."""
    semantic.computation_type_impl = functools.cache(semantic.computation_type_impl)
