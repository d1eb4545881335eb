"""Whether an answer, or a part of it, is a number."""

from __future__ import annotations

from numbers import Real

from labs_helpers.course.verdict.wrong import Wrong


def is_number(answer) -> bool:
    """Whether it is a real number; True and False are none, a tensor with one element is none, and NaN is one."""
    return isinstance(answer, Real) and not isinstance(answer, bool)


def expect_is_number(case: str, name: str, found) -> None:
    """Raises Wrong unless `found`, called `name`, is a number: before it is compared with any."""
    if not is_number(found):
        raise Wrong(case, f"{name} is {found!r:.60}; a number is asked for")
