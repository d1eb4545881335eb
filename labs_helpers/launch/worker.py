"""The program that every rank runs: python worker.py FOLDER [SCRIPT ARGUMENT...] (a file, not a module; mpirun.py
starts it)

It writes to FOLDER, with the rank in place of R: R.output (the beginning of its output) and R.output.N (the last two
parts of the same length, of which this is the N-th), R.pid, R.where (where it was when it was ended), R.error (why it
failed), R.done (its result, pickled; empty if it called sys.exit). Without SCRIPT it calls the function in FOLDER/call.
It imports nothing from this package, so that a rank that cannot import the package can still report that.
"""

import faulthandler
import gc
import io
import os
import pickle
import runpy
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

RANK_VARIABLES = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID")
OUTERMOST = (b" in <module>\n", b" in _run_module_as_main\n")  # the last line of a whole answer
LEAVE_GROUP = (
    "LABS_LEAVE_GROUP"  # set: mpirun kills the group that it made for a rank, and the caller wants to ask first
)
OUTPUT_PART = 2 * 2**20  # bytes; three parts at most are kept of what a rank prints
STOPPED, DEAD = "T", ("Z", "X")  # states of a process in /proc
OTHERS_MAY_FAIL_TOO_S = 0.5  # so that an error on every rank is reported as such, not as the error of the first rank


def main() -> None:
    folder, script = Path(sys.argv[1]), sys.argv[2:]
    rank = next((os.environ[name] for name in RANK_VARIABLES if name in os.environ), "0")
    finish_printing = _print_to(folder / f"{rank}.output")
    if LEAVE_GROUP in os.environ:
        _leave_group()
    say_where_when_asked(folder, rank)
    try:
        result = _run_script(script) if script else _call(folder / "call")
        write(folder / f"{rank}.done", result)
    except BaseException as error:
        if isinstance(error, SystemExit) and not error.code:
            write(folder / f"{rank}.done", b"")
        else:
            write(folder / f"{rank}.error", _described(error).encode())
            _end_all_ranks(folder, finish_printing)


def _leave_group() -> None:
    """Continue as a child in a separate process group, which mpirun does not know; this process ends with the
    child's status."""
    if child := os.fork():
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code < 0:
            os.kill(os.getpid(), -code)
        os._exit(code)
    os.setpgid(0, 0)


def _run_script(script: list[str]) -> bytes:
    sys.argv[:] = script
    here = Path(__file__).resolve().parent
    sys.path[:] = [str(Path(script[0]).parent), *(path for path in sys.path if path != str(here)), str(here.parents[1])]
    runpy.run_path(script[0], run_name="__main__")
    return b""


def _call(file: Path) -> bytes:
    import linecache

    with file.open("rb") as stream:
        sys.path[:], ranks, hosts, cells = pickle.load(stream)
        linecache.cache.update(cells)  # notebook cells are not files, but tracebacks should show their lines
        import cloudpickle
        from mpi4py import MPI

        if MPI.COMM_WORLD.size != ranks:
            raise RuntimeError(
                f"mpirun started {ranks} programs of {MPI.COMM_WORLD.size} rank: mpirun and mpi4py's MPI differ. "
                "Take another MPI's folder out of PATH and LD_LIBRARY_PATH"
            )
        rank, here = MPI.COMM_WORLD.rank, os.uname().nodename
        if hosts and here != hosts[rank]:
            raise RuntimeError(f"rank {rank} was to be on {hosts[rank]}, but is on {here}")
        # PyTorch, which most functions import, makes objects that stay: no garbage is looked for in them, now or later.
        gc.disable()
        function, args = pickle.load(stream)
        gc.freeze()
        gc.enable()
    return cloudpickle.dumps(function(MPI.COMM_WORLD, *args))


def _print_to(file: Path) -> Callable[[], None]:
    """Redirect output to `file` from now on, through a process that keeps at most three parts of it.

    That process lives until it has written everything, even if this one dies. Returns a function that ends it within 1
    s.
    """
    sys.stdout.flush()
    reading, writing = os.pipe()
    written, is_writing = os.pipe()
    if (child := os.fork()) == 0:
        if os.fork() == 0:
            os.setpgid(0, 0)  # otherwise mpirun would end it together with this rank
            for descriptor in (writing, written, 0, 1, 2):
                os.close(descriptor)
            with suppress(OSError):  # the folder is gone
                _keep_parts(reading, file)
        os._exit(0)
    os.waitpid(child, 0)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(writing, stream.fileno())
        cast(io.TextIOWrapper, stream).reconfigure(line_buffering=True, encoding="utf-8", errors="replace")
    for descriptor in (reading, writing, is_writing):
        os.close(descriptor)

    def finish() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        silence = os.open(os.devnull, os.O_WRONLY)
        for descriptor in (1, 2):
            os.dup2(silence, descriptor)
        select.select([written], [], [], 1)

    return finish


def _keep_parts(reading: int, file: Path) -> None:
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    number, room, part = 0, OUTPUT_PART, os.open(file, os.O_WRONLY | os.O_CREAT, 0o644)
    while chunk := os.read(reading, 2**16):
        while chunk:
            if not room:
                os.close(part)
                number, room = number + 1, OUTPUT_PART
                part = os.open(f"{file}.{number}", os.O_WRONLY | os.O_CREAT, 0o644)
                if number > 2:
                    os.unlink(f"{file}.{number - 2}")
            count = os.write(part, chunk[:room])
            chunk, room = chunk[count:], room - count


def write(file: Path, content: bytes) -> None:
    part = file.with_suffix(".part")
    part.write_bytes(content)
    part.rename(file)  # whoever sees the file sees all of it


def _described(error: BaseException) -> str:
    """Return the traceback without the frames of this file."""
    place, ours = error.__traceback__, (__file__, runpy.__file__, "<frozen runpy>")
    while place is not None and place.tb_frame.f_code.co_filename in ours:
        place = place.tb_next
    return "".join(traceback.format_exception(type(error), error, place)).strip()


def say_where_when_asked(folder: Path, rank: int | str) -> None:
    """From now on, answer SIGCONT, and a crash, by writing to R.where where this process is."""
    where = open(folder / f"{rank}.where", "w")
    faulthandler.enable(where, all_threads=False)
    faulthandler.register(signal.SIGCONT, where, all_threads=False)  # Open MPI sends it before it ends a rank
    write(folder / f"{rank}.pid", f"{os.getpid()} {where_pids_mean_the_same()}".encode())


def ask_where(folder: Path) -> None:
    """Ask the ranks on this host that are still running where they are, and wait at most 1 s for their answers."""
    asked = []
    for file in folder.glob("*.pid"):
        pid, place = file.read_text().split()
        if place == where_pids_mean_the_same() and not _ended(file):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGCONT)
                asked.append(file.with_suffix(".where"))
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline and not all(file.read_bytes().endswith(OUTERMOST) for file in asked):
        time.sleep(0.01)


def died(folder: Path) -> list[int]:
    """Return the ranks on this host whose process has ended without a result, whether with an error or without any
    message."""
    return [rank for rank in gone(folder) if not (folder / f"{rank}.done").exists()]


def gone(folder: Path) -> list[int]:
    """Return the ranks on this host whose process has ended."""
    here, ranks = where_pids_mean_the_same(), []
    for file in folder.glob("*.pid"):
        pid, place = file.read_text().split()
        if place == here and not lives(pid):
            ranks.append(int(file.stem))
    return sorted(ranks)


def lives(pid: str) -> bool:
    return state_and_start(pid)[0] not in DEAD


def state_and_start(pid: str) -> tuple[str, str]:
    """Return a process's state, as /proc has it, and when it started; X and '' if there is no such process. Process
    ids are reused, start times are not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[19]
    except OSError:
        return "X", ""


def where_pids_mean_the_same() -> str:
    """Identify this PID namespace. The host's name does not: one machine may pretend to be several."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/pid")
    except OSError:
        return os.uname().nodename


def _ended(file: Path) -> bool:
    return file.with_suffix(".done").exists() or file.with_suffix(".error").exists()


def _end_all_ranks(folder: Path, finish_printing: Callable[[], None]) -> None:
    """End all ranks, because the others would wait forever for the one that failed."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        sys.exit(1)
    deadline = time.monotonic() + OTHERS_MAY_FAIL_TOO_S
    while time.monotonic() < deadline and not all(_ended(file) for file in folder.glob("*.pid")):
        time.sleep(0.01)
    ask_where(folder)
    finish_printing()  # the error was reported; MPI's notice of the abort would only repeat it
    mpi.COMM_WORLD.Abort(1)


if __name__ == "__main__":
    main()
