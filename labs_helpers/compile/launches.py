"""Record every kernel launch inside a `with` block: the kernel, its arguments and its options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from types import FunctionType
from typing import TYPE_CHECKING, Any

from labs_helpers.compile.prepared_launch import usual_launches

if TYPE_CHECKING:
    import torch

OPTIONS = ("num_warps", "num_stages")

_TYPES = {
    "torch.float16": "fp16",
    "torch.bfloat16": "bf16",
    "torch.float32": "fp32",
    "torch.float64": "fp64",
    "torch.int8": "i8",
    "torch.int16": "i16",
    "torch.int32": "i32",
    "torch.int64": "i64",
    "torch.uint8": "u8",
    "torch.bool": "i1",
    "torch.float8_e4m3fn": "fp8e4nv",
}


@dataclass
class Launch:
    """One launch. `arguments` maps the kernel's parameter names to the values passed."""

    kernel: FunctionType
    grid: tuple[int, ...]
    arguments: dict[str, Any]
    options: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.kernel.__name__

    @cached_property
    def constexprs(self) -> dict[str, Any]:
        """Return the launch's compile-time parameters: name → value."""
        annotations = inspect.get_annotations(self.kernel)
        return {k: v for k, v in self.arguments.items() if "constexpr" in str(annotations.get(k, ""))}

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the launch's tensors: parameter name → tensor."""
        return {k: v for k, v in self.arguments.items() if hasattr(v, "data_ptr")}

    def signature(self, dtype: torch.dtype | None = None) -> dict[str, str]:
        """Return Triton's types of the run-time parameters; `dtype` replaces that of every floating tensor."""
        types = {}
        for name, value in self.arguments.items():
            # A launch also turns an integer 1 into a constant, so that the compiler knows a contiguous stride.
            if name in self.constexprs or value is None or (type(value) is int and value == 1):
                types[name] = "constexpr"
            elif hasattr(value, "data_ptr"):
                floating = value.dtype.is_floating_point
                types[name] = "*" + _TYPES[str(dtype if dtype is not None and floating else value.dtype)]
            elif isinstance(value, bool):
                types[name] = "i1"
            elif isinstance(value, int):
                types[name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            elif isinstance(value, float):
                types[name] = "fp32"
            else:
                raise TypeError(f"{self.name}: parameter {name} has a type no kernel takes: {value!r}")
        return types


@contextmanager
def record_launches(run: bool = True) -> Iterator[list[Launch]]:
    """Yield a list that gains a `Launch` for each kernel started inside the block; with `run=False` no kernel runs."""
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction

    launches: list[Launch] = []

    def recorded(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:
            launches.append(_launch(self.fn, grid, args, kwargs))
            return original(self, *args, grid=grid, warmup=warmup, **kwargs) if run else None

        return wrapper

    originals = {kind: kind.run for kind in (InterpretedFunction, JITFunction)}
    for kind, original in originals.items():
        kind.run = recorded(original)
    try:
        with usual_launches():
            yield launches
    finally:
        for kind, original in originals.items():
            kind.run = original


def _launch(kernel: FunctionType, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Launch:
    signature = inspect.signature(kernel)
    bound = signature.bind(*args, **{k: v for k, v in kwargs.items() if k in signature.parameters})
    bound.apply_defaults()
    arguments = dict(bound.arguments)
    grid = grid(arguments) if callable(grid) else grid
    if isinstance(grid, int):
        raise TypeError(f"a grid is a tuple of one to three numbers, such as ({grid},), not {grid}")
    return Launch(kernel, tuple(grid), arguments, {k: kwargs[k] for k in OPTIONS if k in kwargs})
