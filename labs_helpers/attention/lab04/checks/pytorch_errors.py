"""Errors that PyTorch raises in an answer of plain PyTorch, with what they mean there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from labs_helpers.course.verdict import describe_error
from labs_helpers.course.verdict.messages.torch import INNER_SIZES, SIZES_DIFFER


class _Shapes(TorchDispatchMode):
    """Remembers the shapes of the tensors that the operation which failed was called with."""

    failed: tuple[tuple[int, ...], ...] = ()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        try:
            return function(*args, **(kwargs or {}))
        except RuntimeError:
            self.failed = tuple(tuple(x.shape) for x in tree_leaves(args) if isinstance(x, torch.Tensor))
            raise


@contextmanager
def explained(student, case: str) -> Iterator[None]:
    """Inside the block an error of PyTorch becomes a Wrong with its meaning, where that is known."""
    shapes = _Shapes()
    try:
        with shapes:
            yield
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise describe_error(student, error, case, _errors(*shapes.failed)) from error


def _errors(*shapes: tuple[int, ...]):
    """(pattern, cause) of PyTorch's messages, for an operation on tensors of these shapes."""
    here = f", here {' and '.join(map(str, shapes))}" if shapes else ""
    if len(shapes) == 2 and min(shapes, key=len) == max(shapes, key=len)[:-1]:
        sizes = "a number per row meets a matrix{}: it has to be a column, by x[:, None], x[..., None] or keepdim=True"
    else:
        sizes = "the shapes do not fit{}: from the last dimension back, two sizes have to be equal, or one of them 1"
    return (
        (SIZES_DIFFER, sizes.format(here)),
        (
            r"invalid gradient at index|incorrect number of gradients",
            "backward returns a gradient for each argument of forward, in their order: dq, dk, dv",
        ),
        (
            INNER_SIZES,
            f"the inner sizes of a product differ{here}: a .mT is missing or too many, or another tensor stands there",
        ),
    )
