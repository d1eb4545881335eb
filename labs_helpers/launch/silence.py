"""Report that a command is still running if it prints nothing for a while and a person watches it."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from labs_helpers.launch.worker import RANK_VARIABLES

FIRST_S, SECOND_S, LATEST_S = 2.0, 10.0, 60.0  # seconds of silence before the first, the second and each later line
WATCHED = "LABS_WATCHED"  # '1': a person watches although stderr is a pipe, as under mpirun


class Silence:
    """Decides when to print which line. Times are in seconds of one clock."""

    def __init__(self, began: float):
        self.began = self.heard = began
        self.patience, self.last = FIRST_S, ""

    def hear(self, text: str, now: float) -> None:
        """Record that the program printed `text`."""
        self.heard = now
        self.last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), self.last)

    def due(self, now: float) -> str:
        """Return the line to print now; '' as long as the silence is short."""
        if now - self.heard < self.patience:
            return ""
        self.heard, self.patience = now, min(LATEST_S, max(SECOND_S, 2 * self.patience))
        return f"… {now - self.began:.0f} s{f', after: {self.last}' if self.last else ' so far'}\n"


class _Heard:
    """A stream that reports its text to a Silence."""

    def __init__(self, stream: Any, silence: Silence):
        self._stream, self._silence = stream, silence

    def write(self, text: str) -> int:
        self._silence.hear(text, time.monotonic())
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def told() -> Iterator[None]:
    """Inside the block, the first rank prints to stderr how long the program has been running."""
    first = all(os.environ.get(name, "0") == "0" for name in (*RANK_VARIABLES, "RANK"))
    if not first or not (sys.stderr.isatty() or os.environ.get(WATCHED) == "1"):
        yield
        return
    silence, over, streams = Silence(time.monotonic()), threading.Event(), (sys.stdout, sys.stderr)
    sys.stdout, sys.stderr = (_Heard(stream, silence) for stream in streams)

    def watch() -> None:
        while not over.wait(0.2):
            if line := silence.due(time.monotonic()):
                os.write(2, line.encode())

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        over.set()
        sys.stdout, sys.stderr = streams
