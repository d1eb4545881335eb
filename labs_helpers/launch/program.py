"""Run a command for its user: within a time limit, and with a one-sentence message for an error outside the program.

    if __name__ == "__main__":
        program.run(main)

main() reads its options with a `Parser`.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
import threading
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NoReturn

from labs_helpers.launch import silence
from labs_helpers.launch.failure import RanksFailed
from labs_helpers.launch.process import ProcessFailed

HOUR = 3600.0
TIMED_OUT, INTERRUPTED = 124, 130  # exit statuses, those of timeout(1) and of a shell
_timers: list[threading.Timer | None] = []  # the limit of this process's only `run`


class Parser(argparse.ArgumentParser):
    """A parser with the option --limit. Inside `run`, parsing the options starts the time limit. limit: the default,
    in seconds."""

    def __init__(self, *, limit: float = HOUR, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)
        told = "end the program after this many seconds; default: %(default)g"
        self.add_argument("--limit", type=seconds, default=limit, metavar="S", help=told)

    def parse_args(self, *args: Any, **kwargs: Any) -> Any:
        given = super().parse_args(*args, **kwargs)
        start_limit(given.limit)
        return given


def run(main: Callable[[], int | None], watched: bool = True) -> None:
    """Call main. Errors of files, memory and other processes become one sentence; a bug keeps its traceback.

    watched: report that a silent program still runs; see `silence`.

    If this process is one of several MPI ranks, its failure ends the others. Raises SystemExit unless main returns None
    or 0: with main's result, with 1 after an error, or with TIMED_OUT at the time limit.
    """
    _timers.append(None)
    try:
        with silence.told() if watched else nullcontext():
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
    """Give the program `limit` seconds from now on. Outside `run`, as in a test that calls main, there is no limit."""
    if not _timers:
        return
    if timer := _timers.pop():
        timer.cancel()
    timer = threading.Timer(limit, _time_is_over, [limit])
    timer.daemon = True
    _timers.append(timer)
    timer.start()


def sentence(error: BaseException) -> str:
    """Return the message for an error whose cause lies outside the program; '' for a bug."""
    text = str(error)
    if isinstance(error, ProcessFailed | RanksFailed):
        return text
    # PyTorch raises its own RuntimeError on GPUs, and a plain one on CPUs.
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError" or "can't allocate memory" in text:
        return f"not enough memory: {text.splitlines()[0] if text else 'MemoryError'}"
    if isinstance(error, OSError):
        said = error.strerror or text
        return f"{error.filename}: {said}" if error.filename else said
    return ""


def fail(said: str, status: int = 1) -> NoReturn:
    """Print the sentence and exit with the status, together with the other MPI ranks."""
    print(f"{name()}: error: {said}", file=sys.stderr, flush=True)
    MPI = sys.modules.get("mpi4py.MPI")
    if MPI is not None and MPI.Is_initialized() and not MPI.Is_finalized() and MPI.COMM_WORLD.size > 1:
        from mpi4py.run import set_abort_status

        set_abort_status(status)  # otherwise the others would wait for this rank
    raise SystemExit(status) from None


def name() -> str:
    """Return this program's name, such as 'train_2d.py' or '-m labs_helpers.gemm.study'."""
    spec = sys.modules["__main__"].__spec__
    return f"-m {spec.name.removesuffix('.__main__')}" if spec else Path(sys.argv[0]).name


def seconds(text: str) -> float:
    """Parse an option's value: a positive number of seconds."""
    if not 0 < (number := float(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a positive number of seconds")
    return number


def _time_is_over(limit: float) -> None:
    """End the program at its limit. This runs in a thread, because a program inside a hung MPI call or compiler
    handles no signal."""
    said = f"{name()}: error: not finished after {limit:g} s, its time limit; --limit S sets the limit to S seconds\n"
    os.write(2, said.encode())
    flushing = threading.Thread(target=sys.stdout.flush, daemon=True)  # may block
    flushing.start()
    flushing.join(1)
    os._exit(TIMED_OUT)
