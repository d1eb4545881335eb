"""Errors that PyTorch raises in an answer of plain PyTorch, with what they mean there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from labs_helpers.course.verdict import Wrong, describe_error

MEANINGS = (
    (
        r"Boolean value of Tensor",
        "Python's max, min, and, or, if ask a tensor for one truth value; torch.maximum, torch.minimum, &, | and "
        "torch.where go element by element",
    ),
    (
        r"must match the size|must match the existing size",
        "a number a row meets a matrix: it has to be a column, by x[:, None], x[..., None] or keepdim=True",
    ),
    (
        r"invalid gradient at index|incorrect number of gradients",
        "backward returns a gradient for each argument of forward, in their order: dq, dk, dv",
    ),
    (
        r"Expected size for first two dimensions|mat1 and mat2 shapes|inner dimension|size mismatch",
        "the inner sizes of a product differ: a .mT is missing or one too many, or another tensor stands there",
    ),
)


@contextmanager
def explained(student, case: str) -> Iterator[None]:
    """Inside the block an error of PyTorch becomes a Wrong with its meaning, where that is known."""
    try:
        yield
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        wrong = describe_error(student, error, case)
        meaning = next((text for pattern, text in MEANINGS if re.search(pattern, str(error))), "")
        raise Wrong(case, wrong.found, cause=wrong.causes or meaning) from error
