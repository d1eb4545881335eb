"""Find a rank's place in a program, or an error's: the innermost line that does not belong to the practice ranks."""

from __future__ import annotations

import linecache
from pathlib import Path

OWN_FILES = {str(path) for path in Path(__file__).parent.rglob("*.py")}  # other modules add theirs


def place(frame, lineno: int | None = None) -> str:
    """Return 'ring_shift, line 7: comm.Send(block, right)' for a frame and its callers."""
    while frame.f_back is not None and frame.f_code.co_filename in OWN_FILES:
        frame, lineno = frame.f_back, None
    lineno = lineno or line_of(frame)
    text = linecache.getline(frame.f_code.co_filename, lineno).strip()
    return f"{frame.f_code.co_name}, line {lineno}" + (f": {text}" if text else "")


def line_of(frame) -> int:
    """Return the number of a frame's line; at a loop's jump back, which has none, that of the line before it."""
    if frame.f_lineno is not None:
        return frame.f_lineno
    code = frame.f_code
    lines = [line for start, _, line in code.co_lines() if line is not None and start <= frame.f_lasti]
    return lines[-1] if lines else code.co_firstlineno


def raised_at(error: BaseException) -> str:
    """Return the same for an error that passed such a line, else ''."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename not in OWN_FILES:
            found = trace
        trace = trace.tb_next
    return place(found.tb_frame, found.tb_lineno) if found is not None else ""
