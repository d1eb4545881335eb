"""Whether an answer leaves the tensors that it is given as they are, and puts each result into memory of its own."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch.utils._pytree import tree_leaves

from labs_helpers.compile.source import plain
from labs_helpers.course.verdict.wrong import Wrong


class Given:
    """The tensors among an answer's arguments, by their names, and what stood in them before the call."""

    def __init__(self, student, args: tuple, kwargs: dict):
        try:
            bound = inspect.signature(plain(student)).bind_partial(*args, **kwargs).arguments
        except TypeError:  # another signature than was asked for: the call itself says so
            bound = {}
        named = {name: tree_leaves(value) for name, value in bound.items()}  # of *given several
        every = {
            name if len(some) == 1 else f"{name}[{i}]": x for name, some in named.items() for i, x in enumerate(some)
        }
        self.tensors = {name: value for name, value in every.items() if isinstance(value, torch.Tensor)}
        self.before = {name: _bits(tensor) for name, tensor in self.tensors.items()}

    def expect_left_alone(self, case: str, value) -> None:
        """Raises Wrong where `value`, what came back, shares memory with one of them, or where one was changed."""
        own = _memory(value)
        for name, tensor in self.tensors.items():
            if tensor.untyped_storage().data_ptr() in own:
                raise Wrong(
                    case,
                    f"the result lies in the memory of {name}, which was given to you.",
                    cause="the output is no tensor of its own; torch.empty makes one.",
                )
        for name, tensor in self.tensors.items():
            if not torch.equal(_bits(tensor), self.before[name]):
                raise Wrong(
                    case,
                    f"{name}, which was given to you, was changed.",
                    cause=f"an operation in place, out={name}, or a store into {name}; write to the output only.",
                )


def expect_new_results(case: str, first, again: Callable[[], object]) -> None:
    """Raise Wrong where `again()`, a second call, returns memory of `first`, the result of a call, or changes it."""
    held = [t for t in tree_leaves(first) if isinstance(t, torch.Tensor)]
    before = [_bits(t) for t in held]
    if _memory(first) & _memory(again()) or not all(map(torch.equal, map(_bits, held), before)):
        raise Wrong(
            case,
            "a second call overwrites what the first one returned.",
            cause="the result is kept between calls, in a global variable or a default argument; make one per call",
        )


def _memory(value) -> set[int]:
    """Where the tensors in `value` lie."""
    return {t.untyped_storage().data_ptr() for t in tree_leaves(value) if isinstance(t, torch.Tensor) and t.numel()}


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor's bytes, in which NaN equals NaN."""
    copied = torch.empty(tensor.shape, dtype=tensor.dtype, device=tensor.device)
    return copied.copy_(tensor).flatten().view(torch.uint8)
