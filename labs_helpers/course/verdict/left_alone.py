"""Check that an answer does not change its arguments and returns each result in new memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch.utils._pytree import tree_leaves

from labs_helpers.compile.source import plain
from labs_helpers.course.verdict.wrong import Wrong


class Given:
    """The tensors among an answer's arguments, by name, with a copy of their contents before the call."""

    def __init__(self, student, args: tuple, kwargs: dict):
        try:
            bound = inspect.signature(plain(student)).bind_partial(*args, **kwargs).arguments
        except TypeError:  # a wrong signature: the call itself will report it
            bound = {}
        named = {name: tree_leaves(value) for name, value in bound.items()}  # of *given several
        every = {
            name if len(some) == 1 else f"{name}[{i}]": x for name, some in named.items() for i, x in enumerate(some)
        }
        self.tensors = {name: value for name, value in every.items() if isinstance(value, torch.Tensor)}
        self.before = {name: _bits(tensor) for name, tensor in self.tensors.items()}

    def expect_left_alone(self, case: str, value) -> None:
        """Raise Wrong if the returned `value` shares memory with one of the tensors, or if one of them was changed."""
        own = _memory(value)
        for name, tensor in self.tensors.items():
            if tensor.untyped_storage().data_ptr() in own:
                raise Wrong(
                    case,
                    f"the result shares memory with the argument {name}.",
                    cause="the function returns its argument or a view of it; torch.empty allocates a new output.",
                )
        for name, tensor in self.tensors.items():
            if not torch.equal(_bits(tensor), self.before[name]):
                raise Wrong(
                    case,
                    f"the function changed its argument {name}.",
                    cause=f"an in-place operation, out={name}, or a store into {name}; write to the output only.",
                )


def expect_new_results(case: str, first, again: Callable[[], object]) -> None:
    """Raise Wrong if the second call `again()` returns memory of `first`, the result of an earlier call, or changes
    it."""
    held = [t for t in tree_leaves(first) if isinstance(t, torch.Tensor)]
    before = [_bits(t) for t in held]
    if _memory(first) & _memory(again()) or not all(map(torch.equal, map(_bits, held), before)):
        raise Wrong(
            case,
            "a second call overwrites the result of the first one.",
            cause="the result is kept between calls, in a global variable or a default argument; allocate one per call",
        )


def _memory(value) -> set[int]:
    """Return the addresses of the tensors in `value`."""
    return {t.untyped_storage().data_ptr() for t in tree_leaves(value) if isinstance(t, torch.Tensor) and t.numel()}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """Return a copy of a tensor's bytes, in which NaN equals NaN."""
    copied = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return copied.copy_(tensor).flatten().view(torch.uint8)
