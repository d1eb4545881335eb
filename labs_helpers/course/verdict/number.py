"""Check that an answer, or a part of it, is a number."""

from __future__ import annotations

from numbers import Real

from labs_helpers.course.verdict.wrong import Wrong


def is_number(answer) -> bool:
    """Tell whether `answer` is a real number. Booleans and tensors with one element are not; NaN is."""
    return isinstance(answer, Real) and not isinstance(answer, bool)


def expect_is_number(case: str, name: str, found) -> None:
    """Raise Wrong unless `found`, called `name`, is a number; checks call this before they compare it."""
    if not is_number(found):
        raise Wrong(case, f"{name} is {found!r:.60}, expected a number")
