"""A command as its user sees it: it has a time limit, and says in one sentence what was wrong outside its own code.

    if __name__ == "__main__":
        program.run(main)

where main() reads its options with a `Parser`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from labs_helpers.launch import silence
from labs_helpers.launch.failure import RanksFailed
from labs_helpers.launch.process import ProcessFailed

HOUR = 3600.0
TIMED_OUT, INTERRUPTED = 124, 130  # exit statuses, those of timeout(1) and of a shell
_timers: list[threading.Timer | None] = []  # of this process's `run`, which is at most one


class Parser(argparse.ArgumentParser):
    """Knows --limit: inside `run`, reading the options starts the program's time. limit: the default, in seconds."""

    def __init__(self, *, limit: float = HOUR, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        told = "end the program after so many seconds; default: %(default)g"
        self.add_argument("--limit", type=seconds, default=limit, metavar="S", help=told)

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        given = super().parse_args(*args, **kwargs)
        start_limit(given.limit)
        return given


def run(main: Callable[[], int | None]) -> None:
    """Call main. Errors of files, memory and other processes become a sentence; a bug keeps its traceback.

    Where this process is one of several ranks of MPI, its failure ends the others. SystemExit unless main returns None
    or 0: with what main returns, 1 after an error, TIMED_OUT at the time limit.
    """
    _timers.append(None)
    try:
        with silence.told():
            status = main()
        if status:
            sys.exit(status)
    except KeyboardInterrupt:
        fail("interrupted", INTERRUPTED)
    except Exception as error:
        if said := sentence(error):
            fail(said)
        raise
    finally:
        if timer := _timers.pop():
            timer.cancel()


def start_limit(limit: float) -> None:
    """From now on the program has `limit` seconds. Without `run`, as when a test calls main, it has all the time."""
    if not _timers:
        return
    if timer := _timers.pop():
        timer.cancel()
    timer = threading.Timer(limit, _time_is_over, [limit])
    timer.daemon = True
    _timers.append(timer)
    timer.start()


def sentence(error: BaseException) -> str:
    """What to tell about an error whose cause lies outside the program; '' of a bug."""
    text = str(error)
    if isinstance(error, ProcessFailed | RanksFailed):
        return text
    # PyTorch raises a RuntimeError of its own on GPUs, and a plain one on CPUs.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in text:
        return f"there is not enough memory: {text.splitlines()[0] if text else 'MemoryError'}"
    if isinstance(error, OSError):
        said = error.strerror or text
        return f"{error.filename}: {said}" if error.filename else said
    return ""


def fail(said: str, status: int = 1) -> NoReturn:
    """Print the sentence and leave with the status, together with the other ranks of MPI."""
    print(f"{name()}: error: {said}", file=sys.stderr, flush=True)
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is not None and MPI.Is_initialized() and not MPI.Is_finalized() and MPI.COMM_WORLD.size > 1:
        from mpi4py.run import set_abort_status

        set_abort_status(status)  # else the others would wait for this rank
    raise SystemExit(status) from None


def name() -> str:
    """This program, such as 'train_2d.py' or '-m labs_helpers.gemm.study'."""
    spec = sys.modules["__main__"].__spec__
    return f"-m {spec.name.removesuffix('.__main__')}" if spec else Path(sys.argv[0]).name


def seconds(text: str) -> float:
    """The type of an option: a positive number of seconds."""
    if not 0 < (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is no positive number of seconds")
    return number


def _time_is_over(limit: float) -> None:
    """In a thread, because a call into MPI or a compiler that does not return hears no signal."""
    said = f"{name()}: error: not done after {limit:g} s, its time limit; --limit S gives it S seconds\n"
    os.write(2, said.encode())
    flushing = threading.Thread(target=sys.stdout.flush, daemon=True)  # which whoever holds stdout may block
    flushing.start()
    flushing.join(1)
    os._exit(TIMED_OUT)
