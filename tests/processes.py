"""Start, signal and wait for processes in tests, also on a busy machine."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from labs_helpers.launch.patience import patience
from labs_helpers.launch.process import end_marked, put_mark

T = TypeVar("T")
PATIENCE_S = 200.0 * patience()  # only guards against hanging; below pytest's own time limit, which names no cause


def start(command: Sequence[str | os.PathLike[str]], **options: Any) -> subprocess.Popen:
    """Start a process that SIGINT ends, also where this one ignores it: in a script's background job, under nohup.

    `options` are those of `subprocess.Popen`. Call it in the main thread.
    """
    # A child inherits an ignored signal, and gets the default in place of a handler.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(command, **options)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def started(
    command: Sequence[str | os.PathLike[str]], *, env: Mapping[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen]:
    """Yield what `start` returns; whatever happens in the block, the process and all that it started end with it."""
    environ = dict(os.environ if env is None else env)
    mark = put_mark(environ)
    with start(command, env=environ, **options) as process:
        try:
            yield process
        finally:
            process.kill()
            end_marked(mark)


def eventually(happens: Callable[[], T], within_s: float = PATIENCE_S) -> T:
    """Ask `happens` until its answer is true, or `within_s` seconds are over; return its last answer."""
    deadline = time.monotonic() + within_s
    while not (answer := happens()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return answer
