"""Explain errors that PyTorch raises in an answer written in plain PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from labs_helpers.course.verdict import describe_error
from labs_helpers.course.verdict.messages.torch import INNER_SIZES, SIZES_DIFFER


class _Shapes(TorchDispatchMode):
    """Remembers the shapes of the tensor arguments of the operation that failed."""

    failed: tuple[tuple[int, ...], ...] = ()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        try:
            return function(*args, **(kwargs or {}))
        except RuntimeError:
            self.failed = tuple(tuple(x.shape) for x in tree_leaves(args) if isinstance(x, torch.Tensor))
            raise


@contextmanager
def explained(student, case: str) -> Iterator[None]:
    """Turn PyTorch's errors inside the block into Wrong, with an explanation where one is known."""
    shapes = _Shapes()
    try:
        with shapes:
            yield
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise describe_error(student, error, case, _errors(*shapes.failed)) from error


def _errors(*shapes: tuple[int, ...]):
    """Return (pattern, cause) for PyTorch's messages about an operation on tensors of these shapes."""
    here = f", here {' and '.join(map(str, shapes))}" if shapes else ""
    if len(shapes) == 2 and min(shapes, key=len) == max(shapes, key=len)[:-1]:
        sizes = "one number per row is combined with a matrix{}; make it a column with "
        sizes += "x[:, None], x[..., None] or keepdim=True"
    else:
        sizes = (
            "the shapes do not match{}: starting from the last dimension, two sizes have to be equal, or one of them 1"
        )
    return (
        (SIZES_DIFFER, sizes.format(here)),
        (
            r"invalid gradient at index|incorrect number of gradients",
            "backward returns one gradient for each argument of forward, in the same order: dq, dk, dv",
        ),
        (
            INNER_SIZES,
            f"the inner sizes of a product differ{here}: a .mT is missing or superfluous, or an operand is wrong",
        ),
    )
