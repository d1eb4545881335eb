"""Describe an exception that an answer raised as a Wrong: its message, the student's line, and the likely cause."""

from __future__ import annotations

import ast
import linecache
import traceback

from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.meter import StrayAccess
from labs_helpers.course.time_limit import TimeLimit
from labs_helpers.course.verdict.dropped import dropped
from labs_helpers.course.verdict.messages import OUTSIDE_KERNELS, Errors, cause_of
from labs_helpers.course.verdict.messages.triton import AT_RUN_TIME
from labs_helpers.course.verdict.telltales import blind, telltales
from labs_helpers.course.verdict.wrong import Wrong


def describe_error(student, error: BaseException, case: str = "", errors: Errors = ()) -> Wrong:
    """Describe `error`, which the function `student` raised in `case`, as a Wrong with its likely cause.

    errors: pairs (pattern, cause) for messages with a particular meaning in this exercise. A pattern is searched in the
    message and the student's line, before the causes that hold in any exercise.

    A Wrong without a cause gets the cause that the kernel's source suggests, if any. A Wrong with a cause keeps it,
    unless the source contains something that is never right, or a result that nothing uses, which explains differing
    values.
    """
    if isinstance(error, Wrong):
        causes = dropped(student, error.causes, bool(error.expected))
        known = blind(student) or causes or telltales(student)
        return Wrong(error.case or case, error.found, error.expected, error.where, known, error.advice)
    files = files_of(student)
    chain = [error]
    while chain[0].__cause__ is not None:
        chain.insert(0, chain[0].__cause__)
    innermost = chain[0]
    if isinstance(innermost, StrayAccess):  # names its line itself
        return Wrong(case, str(innermost), cause=telltales(student) or stray_cause(innermost))
    if isinstance(error, KeyboardInterrupt):
        return _stopped(error, files, case)
    text = f"{type(innermost).__name__}: {str(innermost) or _asserted(innermost)}"
    text = text if len(text) <= 400 else f"{text[:120]} … {text[-120:]}"  # Triton prints whole blocks
    # The interpreter re-raises at each level: the innermost exception that passed the student's code has the line.
    line = next((line for link in chain if (line := _own_line(link, files) or getattr(link, "own_line", ""))), "")
    if any(map(_in_kernel, chain)):
        known = cause_of(text + line, AT_RUN_TIME, shapes=_dot_shapes(innermost))
    else:
        known = cause_of(text + line, errors) or cause_of(text, OUTSIDE_KERNELS)
    return Wrong(case, text + line, cause=telltales(student) or known)


def _stopped(error: KeyboardInterrupt, files: set[str], case: str) -> Wrong:
    """Describe an answer that the time limit or the user interrupted."""
    late, where = isinstance(error, TimeLimit), f"{_own_line(error, files)}{_loop(error, files)}"
    if late and not where:
        return Wrong(
            case,
            f"not finished after {error.seconds:g} s; when it was stopped, your code was not running.",
            advice="run the check again when this machine is less busy.",
        )
    endless = "a loop that never ends"
    if late:
        found, cause = (
            f"not finished after {error.seconds:g} s",
            f"{endless}, or a loop with far more steps than necessary.",
        )
    else:
        found, cause = "interrupted", f"if it did not end by itself: {endless}."
    return Wrong(case, found + where, cause=cause)


def _in_kernel(error: BaseException) -> bool:
    """Tell whether Triton ran the failing code: a message inside a kernel has another meaning than outside."""
    return any("/triton/" in frame.filename for frame in traceback.extract_tb(error.__traceback__))


def stray_cause(error: StrayAccess) -> str:
    """Return the cause of a stray access, depending on whether the load or store on its line has a mask."""
    try:
        calls = [node for node in ast.walk(ast.parse(error.line)) if isinstance(node, ast.Call)]
    except SyntaxError:  # one line of a longer statement
        calls = []
    place = {"load": 1, "store": 2}[error.kind]  # of the mask among tl.load's and tl.store's arguments
    own = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == error.kind]
    masked = [len(call.args) > place or any(word.arg == "mask" for word in call.keywords) for call in own]
    if masked and not any(masked):
        return f"the tl.{error.kind} on that line has no mask, or an offset uses the wrong stride or index."
    if masked and all(masked):
        return "the mask on that line is too wide, or an offset uses the wrong stride or index."
    return "a mask is missing or too wide on that access, or an offset uses the wrong stride or index."


def files_of(student) -> set[str]:
    """Return the files, or the pseudo files of notebook cells, that define a function and the functions that it
    calls."""
    return {plain(part).__code__.co_filename for part in reachable(student).values()}


def _asserted(error: BaseException) -> str:
    """Return the failed line, for an error without a message, such as a bare assert in Triton."""
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line or "") if frames else ""


def _own_line(error: BaseException, files: set[str]) -> str:
    """Return the student's innermost line that led to `error`, or ''."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    if not own:
        return ""
    return _line(own[-1].filename, own[-1].lineno or 0, own[-1].line or "")


def _line(file: str, number: int, otherwise: str = "") -> str:
    return f"\n  line {number}: {(linecache.getline(file, number) or otherwise).strip()}"


def _loop(error: BaseException, files: set[str]) -> str:
    """Return ', inside' and the head of the innermost while loop around that line, or else of the innermost for
    loop."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    try:
        tree = ast.parse("".join(linecache.getlines(own[-1].filename))) if own else ast.Module([], [])
    except SyntaxError:  # a cell with a magic in it
        return ""
    number = own[-1].lineno or 0 if own else 0
    loops = [
        node
        for node in ast.walk(tree)
        if isinstance(node, (ast.While, ast.For)) and node.lineno < number <= (node.end_lineno or 0)
    ]
    loops.sort(key=lambda node: (isinstance(node, ast.While), node.lineno))
    return f", inside{_line(own[-1].filename, loops[-1].lineno)}" if loops else ""


def _dot_shapes(error: BaseException) -> str:
    """Return ', here 32×16 and 64×16' from the frame in which tl.dot rejected its operands; otherwise ''."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    shapes = [frames[-1].f_locals.get(name) if frames else None for name in ("a_shape", "b_shape")]
    if not all(isinstance(shape, list) for shape in shapes):
        return ""
    return ", here " + " and ".join("×".join(str(getattr(n, "value", n)) for n in shape) for shape in shapes)
