"""An exception that an answer raised, described as a Wrong: what it says, the student's own line, the likely cause."""

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

    errors: (pattern, cause) of messages that mean something particular in this exercise. They are looked for in the
    message and the student's own line, and count before the causes that are true in any exercise.

    A Wrong without a cause gets what the kernel's text gives away, if anything; others stay as they are, but for what
    cannot be right whatever came out, and for a result that nothing uses: where values differ, that is the cause."""
    if isinstance(error, Wrong):
        causes = dropped(student, error.causes, bool(error.expected))
        known = blind(student) or causes or telltales(student)
        return Wrong(error.case or case, error.found, error.expected, error.where, known, error.advice)
    files = files_of(student)
    chain = [error]
    while chain[0].__cause__ is not None:
        chain.insert(0, chain[0].__cause__)
    innermost = chain[0]
    if isinstance(innermost, StrayAccess):  # brings its own line
        return Wrong(case, str(innermost), cause=telltales(student) or stray_cause(innermost))
    if isinstance(error, KeyboardInterrupt):
        return _stopped(error, files, case)
    text = f"{type(innermost).__name__}: {str(innermost) or _asserted(innermost)}"
    text = text if len(text) <= 400 else f"{text[:120]} … {text[-120:]}"  # Triton prints whole blocks
    # The interpreter raises anew at each level: the innermost exception that passed the student's code has the line.
    line = next((line for link in chain if (line := _own_line(link, files) or getattr(link, "own_line", ""))), "")
    if any(map(_in_kernel, chain)):
        known = cause_of(text + line, AT_RUN_TIME, shapes=_dot_shapes(innermost))
    else:
        known = cause_of(text + line, errors) or cause_of(text, OUTSIDE_KERNELS)
    return Wrong(case, text + line, cause=telltales(student) or known)


def _stopped(error: KeyboardInterrupt, files: set[str], case: str) -> Wrong:
    """Of an answer that the time limit, or somebody's interrupt, has stopped."""
    late, where = isinstance(error, TimeLimit), f"{_own_line(error, files)}{_loop(error, files)}"
    if late and not where:
        return Wrong(
            case,
            f"not finished after {error.seconds:g} s, and not in your code when it was stopped.",
            advice="run the check again when less runs on this machine.",
        )
    endless = "a loop whose end is never reached"
    if late:
        found, cause = (
            f"not finished after {error.seconds:g} s",
            f"{endless}, or one of far more steps than are needed.",
        )
    else:
        found, cause = "interrupted", f"if it did not end by itself, {endless}."
    return Wrong(case, found + where, cause=cause)


def _in_kernel(error: BaseException) -> bool:
    """Whether Triton was at work: what a message means in a kernel says nothing of PyTorch's or NumPy's own errors."""
    return any("/triton/" in frame.filename for frame in traceback.extract_tb(error.__traceback__))


def stray_cause(error: StrayAccess) -> str:
    """What the line of a stray access tells: whether that load or store has a mask at all."""
    try:
        calls = [node for node in ast.walk(ast.parse(error.line)) if isinstance(node, ast.Call)]
    except SyntaxError:  # a line of several
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
    """The file, or the notebook cell's pseudo file, of a function and of those that it calls."""
    return {plain(part).__code__.co_filename for part in reachable(student).values()}


def _asserted(error: BaseException) -> str:
    """The failed line itself, for an error without a message: a bare assert in Triton's own code."""
    frames = traceback.extract_tb(error.__traceback__)
    return (frames[-1].line or "") if frames else ""


def _own_line(error: BaseException, files: set[str]) -> str:
    """The innermost line of the student's that led to `error`, or '' when there is none."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    if not own:
        return ""
    return _line(own[-1].filename, own[-1].lineno or 0, own[-1].line or "")


def _line(file: str, number: int, otherwise: str = "") -> str:
    return f"\n  line {number}: {(linecache.getline(file, number) or otherwise).strip()}"


def _loop(error: BaseException, files: set[str]) -> str:
    """', inside' and the head of the innermost while round that line, of the innermost for where there is none."""
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
    """', here 32×16 and 64×16' where tl.dot refused its operands, from the frame that refused; else ''."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    shapes = [frames[-1].f_locals.get(name) if frames else None for name in ("a_shape", "b_shape")]
    if not all(isinstance(shape, list) for shape in shapes):
        return ""
    return ", here " + " and ".join("×".join(str(getattr(n, "value", n)) for n in shape) for shape in shapes)
