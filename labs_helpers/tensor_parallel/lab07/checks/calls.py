"""Calls an answer that needs no other rank; an error of it comes back as a Wrong."""

from __future__ import annotations

from collections.abc import Sequence

from labs_helpers.course.verdict import Wrong, describe_error


def call(case: str, student, *arguments, errors: Sequence[tuple[str, str]] = ()):
    """`student(*arguments)`. errors: (pattern, cause) of error messages. Raises Wrong for an error."""
    try:
        return student(*arguments)
    except Exception as error:
        wrong = describe_error(student, error, case, errors)
        raise Wrong(case, f"it raised {wrong.found}", cause=wrong.causes) from error
