"""Hold all processes of a jail to one limit: python together.py MECHANISM MEMORY PROCESSES FILTER COMMAND ARGUMENT...

MEMORY is in bytes and includes files in tmpfs. PROCESSES counts threads. FILTER is a seccomp filter in hexadecimal
digits, which COMMAND can read from descriptor 9. This process is COMMAND's parent and stays outside of the jail, so an
answer can neither see nor signal it. With CGROUP the kernel counts. If this user cannot create a cgroup, SUM adds up
the memory of all descendants ten times per second. When they exceed a limit, this process kills all of them and prints
why.

It imports little, because every jail waits for it.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from threading import get_native_id

CGROUP, SUM = "cgroup", "sum"
IN_WORDS = {CGROUP: "a cgroup", SUM: "a process that adds them up, because this user can make no cgroup"}
FILTER = 9
LOOK_S = 0.1
LONGEST_S = 10.0  # until all are killed and their cgroup is gone
SCAN = 10  # looks until it is asked again of every process whether it is a descendant
OWN = 8  # processes and threads of the program that makes the jail
INODE = 1024  # bytes of the kernel's memory for an empty file
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36  # of linux/prctl.h
CGROUPS, OWN_CGROUPS, PREFIX = "/sys/fs/cgroup", "/proc/self/cgroup", "labs-jail-"


def limited_together(memory: int, processes: int, calls: bytes = b"") -> list[str]:
    """Return the words that begin a command whose processes share these limits. calls: the filter."""
    words = [sys.executable, "-I", "-S", os.path.abspath(__file__)]
    return [*words, mechanism(), str(memory), str(processes + OWN), calls.hex()]


@cache
def mechanism() -> str:
    """Return CGROUP if this process can make cgroups with such limits, else SUM."""
    try:
        with _cgroup(2**30, 100):
            return CGROUP
    except OSError:
        return SUM


def main() -> int:
    kind, memory, processes, calls, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    prctl(PR_SET_CHILD_SUBREAPER, 1)  # a process that loses its parent stays a descendant
    reads, writes = os.pipe()
    os.write(writes, bytes.fromhex(calls))
    os.close(writes)
    os.dup2(reads, FILTER)
    with ExitStack() as stack:
        folders: list[str] = []
        with suppress(OSError):  # where cgroups could be made before, this one may be refused
            folders = stack.enter_context(_cgroup(int(memory), int(processes))) if kind == CGROUP else []
        count = _Sum(int(memory), int(processes))
        return _run(command, folders, lambda: _ran_out(folders[0], int(memory)) if folders else count.exceeds())


def _run(command: list[str], cgroups: list[str], exceeds: Callable[[], str]) -> int:
    """Run the command until it ends, or until `exceeds` names a limit, and return its exit status."""
    child = os.fork()
    if child == 0:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        os.setsid()  # the scheduler shares time among sessions: processes there take none from this one
        for folder in cgroups:
            _write(f"{folder}/cgroup.procs", os.getpid())
        _write("/proc/self/oom_score_adj", 1000)  # if the machine itself runs out of memory, the jail goes first
        for number in (signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores the last two
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    os.close(FILTER)
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, -19)
    try:
        ended, why = os.pidfd_open(child), ""
        while not why and not select.select([ended], [], [], LOOK_S)[0]:
            why = exceeds()
        why = why or exceeds()  # in version 2 of cgroups the kernel kills all at once
    finally:
        kill_descendants()
    if why:
        print(f"\n{why}", flush=True)
        return 1
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return code if code >= 0 else 128 - code


def _no_memory(memory: int) -> str:
    return f"all its processes together need more than the {memory / 2**30:.3g} GiB of memory that they may use"


@contextmanager
def _cgroup(memory: int, processes: int) -> Iterator[list[str]]:
    """Make a cgroup with these limits and yield its folders, that of memory first. Raises OSError."""
    folders: list[str] = []
    try:
        for place, limits in _places(memory, processes):
            _remove([f"{place}/{name}" for name in os.listdir(place) if _is_left(name)], 0)
            folders.append(f"{place}/{PREFIX}{get_native_id()}")
            os.mkdir(folders[-1])
            for name, value in limits.items():
                if "sw" not in name or os.path.exists(f"{folders[-1]}/{name}"):  # some kernels count no swap
                    _write(f"{folders[-1]}/{name}", value)
        yield folders
    finally:
        _remove(folders)


def _is_left(name: str) -> bool:
    """Return True if the thread that created this cgroup has ended, or if another one has its number."""
    maker = name.removeprefix(PREFIX)
    return maker != name and (maker == str(get_native_id()) or not os.path.exists(f"/proc/{maker}"))


def _places(memory: int, processes: int) -> list[tuple[str, dict[str, int]]]:
    """Return the folders to make cgroups in, each with its limits."""
    with open(OWN_CGROUPS) as file:
        lines = [line.strip().split(":", 2) for line in file]
    own = {name: path.rstrip("/") for _, names, path in lines for name in names.split(",")}
    if "memory" in own and "pids" in own:  # version 1
        # At their limit processes wait for this one to kill them all; the kernel would kill one of them.
        limits = {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory, "memory.oom_control": 1}
        places = [f"{CGROUPS}/{name}{own[name]}" for name in ("memory", "pids")]
        return list(zip(places, (limits, {"pids.max": processes}), strict=True))
    # In version 2 limits are for cgroups whose parent has no processes: the new one goes beside this process's own.
    limits = {"memory.max": memory, "memory.swap.max": 0, "memory.oom.group": 1, "pids.max": processes}
    return [(f"{CGROUPS}{os.path.dirname(own.get('', ''))}", limits)]


def _ran_out(folder: str, memory: int) -> str:
    for name, word in (("memory.oom_control", "under_oom"), ("memory.events", "oom_kill")):
        with suppress(FileNotFoundError), open(f"{folder}/{name}") as file:
            if dict(line.split() for line in file)[word] != "0":
                return _no_memory(memory)
    return ""


def _remove(folders: list[str], seconds: float = LONGEST_S) -> None:
    """Remove cgroups. Killed processes may stay in them for some milliseconds."""
    deadline = time.monotonic() + seconds
    for folder in folders:
        while os.path.exists(folder):
            with suppress(OSError):
                os.rmdir(folder)
                break
            if time.monotonic() > deadline:
                break
            time.sleep(0.002)


class _Sum:
    """The memory and the threads of all descendants of this process."""

    def __init__(self, memory: int, processes: int) -> None:
        self.memory, self.processes, self.looks = memory, processes, 0
        self.strangers: set[int] = set()

    def exceeds(self) -> str:
        if self.looks % SCAN == 0:  # a number can be given again, to a descendant
            self.strangers.clear()
        self.looks += 1
        found = [_Process(process) for process in _descendants(self.strangers)]
        if sum(one.threads for one in found) > self.processes:
            return f"it has more than the {self.processes} processes and threads that it may have"
        files = _in_tmpfs(found, self.memory)
        # Of pages that processes share, `most` counts each process's, in little time; `share` divides them.
        for memory_of in (_Process.most, _Process.share):
            if files + sum(map(memory_of, found)) <= self.memory:
                return ""
        return _no_memory(self.memory)


class _Process:
    """Linux's figures for one process; nothing if it has ended."""

    def __init__(self, process: int) -> None:
        self.folder, self.threads = f"/proc/{process}", 0
        with suppress(OSError):
            threads = os.listdir(f"{self.folder}/task")
            # The first thread can have ended before the others, and then it tells nothing of the memory.
            self.folder, self.threads = f"{self.folder}/task/{threads[-1]}", len(threads)

    def most(self) -> int:
        """Return the bytes, including everything shared with others."""
        with suppress(OSError):
            return self._sum("status", ("VmRSS:", "VmSwap:", "VmPTE:"))
        return 0

    def share(self) -> int:
        """Return the bytes, where each page is divided among the processes that share it."""
        try:
            return self._sum("smaps_rollup", ("Pss:", "SwapPss:"))
        except OSError:  # it has ended, or lets nobody look
            return self.most()

    def _sum(self, file_name: str, names: tuple[str, ...]) -> int:
        with open(f"{self.folder}/{file_name}") as file:
            return 1024 * sum(int(line.split()[1]) for line in file if line.startswith(names))


def _in_tmpfs(processes: list[_Process], memory: int) -> int:
    """Return the bytes in the jail's own in-memory file systems. A larger file system is the machine's, which is
    visible while the jail is created."""
    used = 0
    for one in processes:
        with suppress(OSError):
            if os.stat(f"{one.folder}/ns/mnt").st_ino != os.stat("/proc/self/ns/mnt").st_ino:
                for folder in ("tmp", "dev/shm"):
                    found = os.statvfs(f"{one.folder}/root/{folder}")
                    if found.f_blocks * found.f_frsize <= memory:
                        used += (found.f_blocks - found.f_bfree) * found.f_frsize
                        used += (found.f_files - found.f_ffree) * INODE
                break
    return used


def _descendants(strangers: set[int]) -> list[int]:
    """Return the living processes below this one, parents first. strangers: processes known not to be descendants;
    this adds more."""
    running = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    strangers &= running
    children: dict[int, list[int]] = {}
    for process in running - strangers:
        with suppress(OSError), open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
            if fields[0] not in "ZX" or int(fields[17]) > 1:  # its first thread alone may have ended
                children.setdefault(int(fields[1]), []).append(process)
    me = os.getpid()
    outside = [0, *strangers]
    for process in outside:
        outside += [child for child in children.get(process, ()) if child != me]
    strangers.update(outside[1:])
    mine = [me]
    for process in mine:
        mine += children.get(process, ())
    return mine[1:]


def kill_descendants() -> None:
    """Kill all descendants, even if they start new ones at the same time."""
    deadline = time.monotonic() + LONGEST_S
    while (living := _descendants(set())) and time.monotonic() < deadline:
        for process in living:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        time.sleep(0.002)


def prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _write(path: str, number: int) -> None:
    with open(path, "w") as file:
        file.write(str(number))


if __name__ == "__main__":
    sys.exit(main())
