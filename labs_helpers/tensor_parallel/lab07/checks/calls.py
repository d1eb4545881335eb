"""Calls an answer that needs no other rank; an error of it comes back as a Wrong."""

from __future__ import annotations

from collections.abc import Sequence

from labs_helpers.course.verdict import Wrong, cause_of, describe_error

WHOLE = "/ makes a float, even where nothing is left over; // makes an integer"
ERRORS = (  # of any exercise; an exercise's own come before them
    (r"slice indices must be integers|'float' object cannot be interpreted", WHOLE),
    (r"^UnboundLocalError", "an if, or a chain of them, leaves a case out, in which that name gets no value"),
    (r"^TypeError: .* missing \d+ required|takes \d+ positional", "the signature is the one in the docstring's cell"),
)


def call(case: str, student, *arguments, errors: Sequence[tuple[str, str]] = ()):
    """`student(*arguments)`. errors: (pattern, cause) of error messages. Raises Wrong for an error."""
    try:
        return student(*arguments)
    except Exception as error:
        # Not the engine's own causes, which are Triton's.
        found = describe_error(student, error).found
        raise Wrong(case, f"it raised {found}", cause=cause_of(found, (*errors, *ERRORS))) from error
