"""Where in a program a rank stands, or an error was raised: the innermost line that is not of the practice ranks."""

from __future__ import annotations

import linecache
from pathlib import Path

OWN_FILES = {str(path) for path in Path(__file__).parent.rglob("*.py")}  # others add theirs


def place(frame, lineno: int | None = None) -> str:
    """'ring_shift, line 7: comm.Send(block, right)', of a frame and of those that called it."""
    while frame.f_back is not None and frame.f_code.co_filename in OWN_FILES:
        frame, lineno = frame.f_back, None
    lineno = lineno or frame.f_lineno
    text = linecache.getline(frame.f_code.co_filename, lineno).strip()
    return f"{frame.f_code.co_name}, line {lineno}" + (f": {text}" if text else "")


def raised_at(error: BaseException) -> str:
    """The same of an error that passed such a line, else ''."""
    trace, found = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename not in OWN_FILES:
            found = trace
        trace = trace.tb_next
    return place(found.tb_frame, found.tb_lineno) if found is not None else ""
