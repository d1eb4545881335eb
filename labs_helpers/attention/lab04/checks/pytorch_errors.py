"""Errors that PyTorch raises in an answer of plain PyTorch, with what they mean there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from labs_helpers.course.verdict import describe_error
from labs_helpers.course.verdict.messages.torch import INNER_SIZES, SIZES_DIFFER

ERRORS = (
    (
        SIZES_DIFFER,
        "a number a row meets a matrix: it has to be a column, by x[:, None], x[..., None] or keepdim=True",
    ),
    (
        r"invalid gradient at index|incorrect number of gradients",
        "backward returns a gradient for each argument of forward, in their order: dq, dk, dv",
    ),
    (
        INNER_SIZES,
        "the inner sizes of a product differ: a .mT is missing or one too many, or another tensor stands there",
    ),
)


@contextmanager
def explained(student, case: str) -> Iterator[None]:
    """Inside the block an error of PyTorch becomes a Wrong with its meaning, where that is known."""
    try:
        yield
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        raise describe_error(student, error, case, ERRORS) from error
