"""Find a rank's place in a program, or an error's: the innermost line that does not belong to the practice ranks."""

from __future__ import annotations

import linecache
from pathlib import Path

OWN_FILES = {str(path) for path in Path(__file__).parent.rglob("*.py")}  # other modules add theirs


def place(frame, lineno: int | None = None) -> str:
    """Return 'ring_shift, line 7: comm.Send(block, right)' for a frame and its callers."""
    while frame.f_back is not None and frame.f_code.co_filename in OWN_FILES:
        frame, lineno = frame.f_back, None
    lineno = lineno or frame.f_lineno
    text = linecache.getline(frame.f_code.co_filename, lineno).strip()
    return f"{frame.f_code.co_name}, line {lineno}" + (f": {text}" if text else "")


def raised_at(error: BaseException) -> str:
    """Return the same for an error that passed such a line, else ''."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename not in OWN_FILES:
            found = trace
        trace = trace.tb_next
    return place(found.tb_frame, found.tb_lineno) if found is not None else ""
