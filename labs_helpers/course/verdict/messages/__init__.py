"""Likely causes of error messages, grouped by the library that raises them.

A table contains pairs (pattern, cause); the first pattern found in 'KIND: text' counts. A row belongs here if its cause
holds in every exercise. If the meaning of a message depends on the exercise, the pattern is a constant here and the
causes are in the checks. tests/course/verdict/test_messages.py provokes each message, and so notices a library that
rewords one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from labs_helpers.course.verdict.messages import distributed, mpi, numpy, python, torch

Errors = Iterable[tuple[str, str | Callable[[re.Match], str]]]
OUTSIDE_KERNELS = (*python.ERRORS, *numpy.ERRORS, *mpi.ERRORS, *distributed.ERRORS, *torch.ERRORS)


def cause_of(text: str, errors: Errors, **details: str) -> str:
    """Return the cause of the first pattern found in `text`, or ''. details: values for the {…} in a cause. A cause
    may also be a function of the match."""
    found = ((match, cause) for pattern, cause in errors if (match := re.search(pattern, text)))
    return next((cause(match) if callable(cause) else cause.format(**details) for match, cause in found), "")
