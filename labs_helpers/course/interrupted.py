"""Show the notebook's line that an interrupt (■ in the toolbar) stopped, instead of the library's calls."""

from __future__ import annotations

import traceback
from itertools import takewhile
from types import TracebackType

from labs_helpers.launch.stuck import Frame, cell_of, is_installed


def where_interrupted(error: KeyboardInterrupt, tb: TracebackType | None) -> str:
    """Return three lines: the cell and line, its text, and the place in the course's files. They are followed by the
    notes that a launch made about its ranks."""
    calls = reversed(traceback.extract_tb(tb))  # the innermost first
    frames = [Frame(call.name, call.filename, call.lineno or 0) for call in calls]
    called = list(takewhile(lambda frame: not cell_of(frame.file), frames))
    cell = frames[len(called)] if len(called) < len(frames) else None
    inner = next((frame for frame in called if not is_installed(frame.file)), None)
    lines = [f"KeyboardInterrupt in {cell.place.removeprefix('<module>, ')}:", f"      {cell.source}"] if cell else []
    more = "`%tb` shows every call."
    lines = lines or ["KeyboardInterrupt"]
    lines += [f"  It was in {inner.place}. {more}" if inner else f"  {more}", *getattr(error, "__notes__", [])]
    return "\n".join(lines)
