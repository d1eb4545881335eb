"""Likely causes of error messages, grouped by the library that raises them.

A table holds pairs (pattern, cause); the first pattern found in 'KIND: text' counts. A row belongs here if its cause
is true in any exercise. A message that means something else in each exercise has its pattern here, by name, and its
causes in the checks. tests/course/verdict/test_messages.py makes each message happen, and so notices a library that
changes its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from labs_helpers.course.verdict.messages import distributed, mpi, numpy, python, torch

Errors = Iterable[tuple[str, str | Callable[[re.Match], str]]]
OUTSIDE_KERNELS = (*python.ERRORS, *numpy.ERRORS, *mpi.ERRORS, *distributed.ERRORS, *torch.ERRORS)


def cause_of(text: str, errors: Errors, **details: str) -> str:
    """Return the cause of the first pattern found in `text`, or ''. details: values for the {…} in a cause, which may
    also be a function of the match."""
    found = ((match, cause) for pattern, cause in errors if (match := re.search(pattern, text)))
    return next((cause(match) if callable(cause) else cause.format(**details) for match, cause in found), "")
