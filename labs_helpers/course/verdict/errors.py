"""An exception that an answer raised, described as a Wrong: what it says, the student's own line, the likely cause."""

from __future__ import annotations

import linecache
import traceback

from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.meter import StrayAccess
from labs_helpers.course.verdict.messages import AT_RUN_TIME, cause_of
from labs_helpers.course.verdict.wrong import Wrong


def describe_error(student, error: BaseException, case: str = "") -> Wrong:
    """`error`, raised while the function `student` was tried in `case`, as a Wrong; a Wrong as it is."""
    if isinstance(error, Wrong):
        return error
    files = {plain(part).__code__.co_filename for part in reachable(student).values()}
    chain = [error]
    while chain[0].__cause__ is not None:
        chain.insert(0, chain[0].__cause__)
    innermost = chain[0]
    if isinstance(innermost, StrayAccess):  # brings its own line
        cause = "a mask is missing or too wide on that access, or an offset uses the wrong stride or index."
        return Wrong(case, str(innermost), cause=cause)
    if isinstance(error, KeyboardInterrupt):
        return Wrong(
            case,
            f"interrupted{_own_line(error, files)}",
            cause="if it did not end by itself, a loop whose end is never reached.",
        )
    text = f"{type(innermost).__name__}: {str(innermost) or _asserted(innermost)}"
    # The interpreter raises anew at each level: the innermost exception that passed the student's code has the line.
    line = next((line for link in chain if (line := _own_line(link, files))), "")
    return Wrong(case, text + line, cause=cause_of(text, AT_RUN_TIME, shapes=_dot_shapes(innermost)))


def _asserted(error: BaseException) -> str:
    """The failed line itself, for an error without a message: a bare assert in Triton's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line or "") if frames else ""


def _own_line(error: BaseException, files: set[str]) -> str:
    """The innermost line of the student's that led to `error`, or '' when there is none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    if not own:
        return ""
    text = linecache.getline(own[-1].filename, own[-1].lineno or 0) or own[-1].line or ""
    return f"\n  line {own[-1].lineno}: {text.strip()}"


def _dot_shapes(error: BaseException) -> str:
    """', here 32×16 and 64×16' where tl.dot refused its operands, from the frame that refused; else ''."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    shapes = [frames[-1].f_locals.get(name) if frames else None for name in ("a_shape", "b_shape")]
    if not all(isinstance(shape, list) for shape in shapes):
        return ""
    return ", here " + " and ".join("×".join(str(getattr(n, "value", n)) for n in shape) for shape in shapes)
