"""Limit the time of a student's code: an endless loop ends with a message that names its line, and the kernel survives.

    with time_limit(60, files):
        student(x)

After a while, a line says that the code is still running, where, and how to interrupt it. Limits can be nested.
"""

from __future__ import annotations

import ctypes
import gc
import linecache
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator
from contextlib import contextmanager
from types import FrameType

from labs_helpers.practice.place import line_of

LIMIT_S = 60.0  # of one case of a check
TELL_AFTER_S = 20.0
PATIENCE = 5  # times the limit, for code that waits or gets little processor time
AGAIN_S = 1.0  # interval of repeated raises, for code that catches everything
_DEBUGGERS = ("bdb.py", "pdb.py", "pydevd.py", "pydevd_frame.py")


class TimeLimit(KeyboardInterrupt):
    """Raised at the limit. It is a KeyboardInterrupt, so that `except Exception` does not catch it and started
    processes end."""

    seconds: float = LIMIT_S


@contextmanager
def time_limit(seconds: float = LIMIT_S, files: Collection[str] = (), tell: Callable[[str], None] = print) -> Iterator:
    """Raise TimeLimit inside the block once it has run for `seconds`; never in a debugger.

    The limit is reached only if half of the time was processor time, or after PATIENCE times the limit: neither a busy
    machine nor a closed laptop is an endless loop. files: after TELL_AFTER_S, `tell` gets the innermost running line in
    one of them. In the main thread a signal raises TimeLimit, which also ends time.sleep and locks; in other threads it
    is raised at their next line of Python.
    """
    watched, over = threading.get_ident(), threading.Event()
    main = threading.current_thread() is threading.main_thread() and hasattr(signal, "SIGALRM")
    state = _State()
    watcher = threading.Thread(
        target=_watch, args=(watched, main, state, over, seconds, files, tell), daemon=True, name="time limit"
    )
    before = signal.signal(signal.SIGALRM, _handler(state, seconds, lambda: before)) if main else None
    watcher.start()
    try:
        yield
    except TimeLimit as error:
        if state.expired and not main:
            error.seconds = seconds
        raise
    finally:
        over.set()
        try:
            with state.lock:  # after the watcher has ended, it raises nothing in this thread
                state.ended = True
            if state.expired:
                time.sleep(0.01)  # for a pending signal
        finally:
            state.ended = True
            if main:
                signal.signal(signal.SIGALRM, before or signal.SIG_DFL)
            elif state.expired:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(watched), None)


def limit_each(lines: Generator, files: Collection[str] = (), seconds: float = LIMIT_S) -> Iterator:
    """Yield the items of the generator `lines`, with a separate time limit for each, and return the generator's
    return value."""
    try:
        while True:
            with time_limit(seconds, files):
                try:
                    line = next(lines)
                except StopIteration as end:
                    return end.value
            yield line
    finally:
        lines.close()


class _State:
    """The state of one limit: whether it was reached, and whether its block has ended."""

    def __init__(self) -> None:
        self.lock, self.expired, self.ended = threading.Lock(), False, False


def _handler(state: _State, seconds: float, before: Callable) -> Callable:
    def handle(number: int, frame: FrameType | None) -> None:
        if state.expired and not state.ended:
            error = TimeLimit(f"not finished within {seconds:g} s")
            error.seconds = seconds
            raise error
        if callable(earlier := before()):  # of an outer limit, or of a foreign one
            earlier(number, frame)

    return handle


def _watch(thread, main, state: _State, over: threading.Event, seconds: float, files, tell) -> None:
    """Runs in a separate thread: report that the code takes long, and end it at the limit."""
    started, worked = time.monotonic(), time.process_time()
    if TELL_AFTER_S < seconds:
        if over.wait(TELL_AFTER_S):
            return
        if not _debugging(thread):
            tell(_still_running(thread, files, seconds))
    while not over.wait(max(0.0, started + seconds - time.monotonic()) or AGAIN_S):
        passed = time.monotonic() - started
        waited = time.process_time() - worked < seconds / 2 and passed < PATIENCE * seconds
        if passed < seconds or waited or _debugging(thread):
            continue
        with state.lock:
            if state.ended:
                return
            state.expired = True
            if main:
                signal.pthread_kill(thread, signal.SIGALRM)
            else:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TimeLimit))


def _still_running(thread: int, files: Collection[str], seconds: float) -> str:
    frame = _frame_of(thread)
    while frame is not None and frame.f_code.co_filename not in files:
        frame = frame.f_back
    where = ", in the check itself, not in your code"
    if frame is not None:
        number = line_of(frame)
        where = f", now in line {number}: {linecache.getline(frame.f_code.co_filename, number).strip()}"
    return (
        f"… still running after {TELL_AFTER_S:g} s{where}\n  To stop it, interrupt the kernel (■ in the toolbar). "
        f"The check stops it at about {seconds:g} s."
    )


def _debugging(thread: int) -> bool:
    """Tell whether a debugger is active in this process or has stopped the thread."""
    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None and monitoring.get_tool(monitoring.DEBUGGER_ID) is not None:
        return True
    frame = _frame_of(thread)
    while frame is not None:
        if frame.f_code.co_filename.endswith(_DEBUGGERS) or frame.f_trace is not None:
            return True
        frame = frame.f_back
    return False


def _frame_of(thread: int) -> FrameType | None:
    collecting = gc.isenabled()
    gc.disable()  # before 3.11.6 and 3.12.0 a collection inside this call may hang (CPython issue 106883)
    try:
        return sys._current_frames().get(thread)
    finally:
        if collecting:
            gc.enable()
