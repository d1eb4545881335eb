"""Run one command to its end, with a time limit and bounded output, and leave none of its processes behind.

The command gets its own session. When it ends, fails, exceeds its time or is interrupted, `run` first ends whatever is
left of that session, and processes that left it but inherited its environment. If this process itself is killed, Linux
kills the command (through setpriv of util-linux).
"""

import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from labs_helpers.launch import keeper
from labs_helpers.launch.patience import limit_text, patience

OUTPUT_LIMIT = 4 * 2**20  # bytes of output to keep: half from the beginning, half from the end
SHOWN = 20  # lines of a failure's message, from the beginning, where a rank says why it fails, and from the end
LOOK_S = 0.1  # seconds between calls of `over`
GRACE_S = 3.0  # between SIGTERM and SIGKILL
MARK = "LABS_LAUNCH"  # the environment variable that marks a run's descendants


class ProcessFailed(RuntimeError):
    """A command ended with a status other than 0. Attributes: `.command` (list), `.returncode`, `.output` (text)."""

    def __init__(self, command: Sequence[str], returncode: int, output: str, what: str | None = None):
        self.command, self.returncode, self.output, self.what = list(command), returncode, output, what
        lines = output.rstrip().splitlines()
        if (gap := len(lines) - 2 * SHOWN) > 0:
            lines[SHOWN:-SHOWN] = [f"... ({gap} lines left out)"]
        shown = "\n".join(lines) or "(it printed nothing)"
        super().__init__(f"{shlex.join(self.command)}\n{what or how_it_ended(returncode)}. Its output:\n{shown}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.command, self.returncode, self.output, self.what)


class ProcessStopped(ProcessFailed):
    """A command was ended because `over` returned True."""


class ProcessTimeout(ProcessFailed):
    """A command exceeded its time limit and was ended."""


def run(
    command: Sequence[str | os.PathLike[str]],
    *,
    timeout: float,
    env: Mapping[str, str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    input: str | bytes | None = None,
    before_end: Callable[[], None] | None = None,
    keep: bool = False,
    over: Callable[[], object] | None = None,
) -> str:
    """Run `command` (a list, no shell) and return its stdout and stderr together, as text.

    `timeout` is in seconds on a quiet machine (see patience.py). `env` is the whole environment, as in `subprocess`;
    None inherits this process's. The folder of this Python is added to PATH, so that `mpirun` and `torchrun` of a
    virtual environment are found even if it is not activated. stdin is empty unless `input` is given. Beyond
    `OUTPUT_LIMIT` bytes, a line replaces the middle of the output and says how much is missing. `before_end` is called
    when the time limit or an interrupt is about to end the command, the last moment to ask it where it stands. `keep`:
    on Linux, a keeper (see keeper.py) also finds descendants that have left the session and dropped the environment.
    `over` is called ten times per second; when it returns True, the command is ended as at its time limit, and counts
    as failed.

    Raises `ProcessFailed` (status not 0), `ProcessTimeout`, FileNotFoundError (no such command or folder), TypeError or
    ValueError (a command that is no list of strings, a time limit that is not positive).
    """
    if not isinstance(command, Sequence) or isinstance(command, str | bytes) or not command:
        raise TypeError(f"command must be a list such as ['python', '-V'], not {command!r}")
    if not (isinstance(timeout, int | float) and timeout > 0):
        raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
    if cwd is not None and not os.path.isdir(cwd):
        raise FileNotFoundError(f"the folder to run in does not exist: {os.fspath(cwd)}")
    words, longest = [os.fspath(part) for part in command], timeout * patience()
    environment = dict(os.environ if env is None else env)
    mark = put_mark(environment)
    environment["PATH"] = _with_own_folder(environment.get("PATH", os.defpath))
    program = _find(words[0], environment["PATH"], cwd)

    output = _Output()
    timed_out = stopped = False
    with _stdin(input) as stdin:
        process = subprocess.Popen(
            [*_die_with_parent(keep), program, *words[1:]],
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=cwd,
            start_new_session=True,
        )
        try:
            reader = threading.Thread(target=output.read_from, args=(process.stdout,), daemon=True)
            reader.start()
            stopped = _wait(process, longest, over)
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            try:
                if before_end is not None and process.poll() is None:
                    before_end()
            finally:
                _end(process, mark)
    reader.join(GRACE_S)
    if timed_out:
        what = f"did not end within {limit_text(timeout)} and was stopped"
        raise ProcessTimeout(words, process.returncode, output.text(), what)
    if stopped:
        raise ProcessStopped(words, process.returncode, output.text(), "was stopped")
    if process.returncode:
        raise ProcessFailed(words, process.returncode, output.text())
    return output.text()


def _wait(process: subprocess.Popen[bytes], timeout: float, over: Callable[[], object] | None) -> bool:
    """Return False when the process has ended, True when `over` says so first. Raises subprocess.TimeoutExpired."""
    deadline = time.monotonic() + timeout
    while not _has_ended(process, min(deadline - time.monotonic(), timeout if over is None else LOOK_S)):
        if over is not None and over():
            return True
        if time.monotonic() >= deadline:
            raise subprocess.TimeoutExpired(process.args, timeout)
    return False


def _has_ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Return True if the process has ended. Linux reports this immediately; `Popen.wait` polls every 50 ms."""
    if sys.platform != "linux":
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
        return process.poll() is not None
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], max(0, seconds))[0]) and process.wait() is not None
    finally:
        os.close(descriptor)


class _Output:
    """The beginning and the end of a stream, within `OUTPUT_LIMIT` bytes."""

    def __init__(self) -> None:
        self.head, self.tail, self.left_out = bytearray(), bytearray(), 0

    def read_from(self, stream: IO[bytes]) -> None:
        with stream:
            while chunk := os.read(stream.fileno(), 2**16):
                self.add(chunk)

    def add(self, chunk: bytes) -> None:
        half = OUTPUT_LIMIT // 2
        room = half - len(self.head)
        self.head += chunk[:room]
        self.tail += chunk[room:]
        excess = max(0, len(self.tail) - half)
        del self.tail[:excess]
        self.left_out += excess

    def text(self) -> str:
        gap = left_out(self.left_out).encode() if self.left_out else b""
        return (bytes(self.head) + gap + bytes(self.tail)).decode(errors="replace")


def left_out(nbytes: int) -> str:
    return f"\n... ({nbytes} bytes of output left out) ...\n"


def _stdin(input: str | bytes | None) -> IO[bytes]:
    """Return a file with the input, so that a command that never reads it cannot block anyone."""
    if input is None:
        return open(os.devnull, "rb")
    file = tempfile.TemporaryFile()
    file.write(input.encode() if isinstance(input, str) else input)
    file.seek(0)
    return file


def _with_own_folder(path: str) -> str:
    own = str(Path(sys.executable).parent)
    return path if own in path.split(os.pathsep) else own + os.pathsep + path


def _find(name: str, path: str, cwd: str | os.PathLike[str] | None) -> str:
    if os.sep in name:
        name = os.path.abspath(os.path.join(cwd or "", name))
    found = shutil.which(name, path=path)
    if found is None:
        raise FileNotFoundError(f"{name!r} was not found, or is not executable. Is it installed? PATH={path}")
    return found


def _die_with_parent(keep: bool) -> list[str]:
    if keep and sys.platform == "linux":
        return [sys.executable, "-I", "-S", keeper.__file__, str(os.getpid())]
    setpriv = shutil.which("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", "KILL", "--"] if setpriv else []


def put_mark(environment: dict[str, str]) -> str:
    """Mark the processes that will be started with this environment; `end_marked` ends them and their descendants."""
    mark = uuid.uuid4().hex
    environment[MARK] = f"{environment.get(MARK, os.environ.get(MARK, ''))}/{mark}"
    return mark


def end_marked(mark: str) -> None:
    """End the processes that `put_mark` marked: SIGTERM first, and SIGKILL after GRACE_S for those still alive."""
    _end(None, mark)


def _end(process: subprocess.Popen[bytes] | None, mark: str) -> None:
    """End everything left of a run. A second interrupt during the grace period kills it immediately."""
    try:
        _signal_until_gone(process, mark, signal.SIGTERM, GRACE_S)
    finally:
        _signal_until_gone(process, mark, signal.SIGKILL, GRACE_S)
        if process is not None:
            process.poll()


def _signal_until_gone(
    process: subprocess.Popen[bytes] | None, mark: str, number: signal.Signals, seconds: float
) -> None:
    signalled: set[int] = set()
    deadline = time.monotonic() + seconds
    while members := _members(process, mark):
        for pid in members - signalled:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)
        signalled |= members
        if time.monotonic() > deadline:
            break
        time.sleep(0.01)


def _members(process: subprocess.Popen[bytes] | None, mark: str) -> set[int]:
    """Return the living processes of a run: its session's, those that carry its mark (torchrun's workers have their
    own sessions), and the descendants of all of these."""
    leader = None if process is None else process.pid
    members = {process.pid} if process is not None and process.poll() is None else set()
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, parent, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if state in "ZX":
                continue
            parents[int(folder.name)] = int(parent)
            if int(session) == leader or mark.encode() in (folder / "environ").read_bytes():
                members.add(int(folder.name))
    more = members
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - members
        members |= more
    return members


def how_it_ended(returncode: int) -> str:
    if returncode >= 0:
        return f"ended with status {returncode}"
    with suppress(ValueError):
        return f"was ended by {signal.Signals(-returncode).name}"
    return f"was ended by signal {-returncode}"
