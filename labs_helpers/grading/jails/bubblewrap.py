"""Run a command in a jail: no network, a read-only system, no other user's files or processes, and limits on
everything.

bubblewrap creates the namespaces. For root, the command then belongs to an unprivileged user. `why_not` says why there
is no jail, and without one no student's code runs. kinds.py chooses between this jail and the other one.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import labs_helpers
from labs_helpers.grading.jails.no_namespaces import advice
from labs_helpers.grading.jails.probe import leaks
from labs_helpers.grading.jails.system_calls import REFUSED
from labs_helpers.grading.jails.together import FILTER, limited_together
from labs_helpers.launch.process import ProcessFailed, run

MEGABYTE = 2**20
BEGIN_S = 30  # of a core, that Python, torch and Triton may take before the first answer
COURSE = Path(labs_helpers.__file__).parents[1]  # found there, installed or not
# bwrap is the jail's first process, and whatever it has as its input all others of the same user could open in /proc:
# what the command reads goes round it, as a descriptor that bwrap closes.
ROUND = ("/bin/sh", "-c", 'exec "$@" 8<&0 </dev/null', "sh")
FROM_ROUND = ("/bin/sh", "-c", 'exec "$@" <&8 8<&-', "sh")
SYSTEM = ("/usr", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")


@dataclass(frozen=True)
class Limits:
    """The limits of a jail. seconds: of each answer, by the clock; its processor time may be twice that, plus
    BEGIN_S. memory: bytes of all processes of a jail and of its files, which may take half of it; also the address
    space of each process. processes: of a jail, including threads."""

    seconds: float = 60.0
    memory: int = 4096 * MEGABYTE
    processes: int = 300
    file: int = 64 * MEGABYTE


LIMITS = Limits()


@cache
def why_not() -> str:
    """Return the reason why there is no jail on this machine and what to do about it; '' if there is one."""
    for program, package in (("bwrap", "bubblewrap"), ("prlimit", "util-linux"), ("setpriv", "util-linux")):
        if not shutil.which(program):
            return f"{program} is not installed: it is in the package {package}"
    try:
        return leaks(run_in_jail)
    except ProcessFailed as error:
        return f"bubblewrap does not work here: {error.output.strip()}{advice(error.output)}"


def run_in_jail(
    command: Sequence[str],
    readable: Sequence[Path] = (),
    limits: Limits = LIMITS,
    hidden: Sequence[Path] = (),
    **given: Any,
) -> str:
    """Return the output of `command` in a jail. `given` goes to `process.run`, whose errors it raises."""
    return run(in_jail(command, readable, limits, hidden), env={}, **given)


def in_jail(
    command: Sequence[str], readable: Sequence[Path] = (), limits: Limits = LIMITS, hidden: Sequence[Path] = ()
) -> list[str]:
    """Return the command that runs `command` in a jail. readable: files and folders that it may read, under their own
    paths. hidden: folders among them that are empty there.

    It starts in its own empty /tmp, without this process's environment. It gets the system's programs, and this Python
    with its packages.
    """
    python = [Path(prefix) for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)) if not prefix.startswith("/usr")]
    shown = [*python, *(path.resolve() for path in readable)]
    words = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--hostname", "jail", "--clearenv"]
    words += ["--seccomp", str(FILTER)] if REFUSED else []
    words += [word for name, value in environment().items() for word in ("--setenv", name, value)]
    for system in SYSTEM:
        words += ["--ro-bind-try", system, system]
    for folder in ("bin", "sbin", "lib", "lib64"):
        words += ["--symlink", f"usr/{folder}", f"/{folder}"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):
        words += ["--perms", "1777", "--size", str(limits.memory // 4), "--tmpfs", folder]
    words += ["--remount-ro", "/dev"]  # it is in memory too, without a size
    for parent in _parents(shown):
        words += ["--perms", "0755", "--dir", str(parent)]
    for path in shown:
        words += ["--ro-bind", str(path), str(path)]
    for path in hidden:
        words += ["--tmpfs", str(path.resolve()), "--remount-ro", str(path.resolve())]
    words += ["--remount-ro", "/", "--chdir", "/tmp"]
    whole = [*words, *_less(limits), *FROM_ROUND, *command]
    return [*limited_together(limits.memory, limits.processes, REFUSED), *ROUND, *whole]


def environment(home: str = "/tmp") -> dict[str, str]:
    """Return all the variables that a student's code sees. Kernels run in the interpreter, even on a machine with a
    GPU."""
    return {
        "LABS_DEVICE": "cpu",
        "PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": home, "TMPDIR": home, "USER": "nobody", "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(COURSE),
    }  # fmt: skip


def _parents(paths: Sequence[Path]) -> list[Path]:
    """Return the folders above these that do not exist yet, outermost first."""
    above = {parent for path in paths for parent in path.parents} - {Path("/"), Path("/tmp")}
    return sorted((path for path in above if not path.is_relative_to("/usr")), key=lambda path: len(path.parts))


def _less(limits: Limits) -> list[str]:
    """Drop rights and set limits: return bwrap's remaining options, and the words that begin the command."""
    if os.geteuid() != 0:
        rest = ["--unshare-user", "--cap-drop", "ALL", "--disable-userns", "--assert-userns-disabled", "--"]
        return [*rest, *limited(limits)]
    return ["--", *unprivileged(own_user()), *limited(limits)]


def limited(limits: Limits) -> list[str]:
    """Return the words that begin a command and limit each of its processes, which matters until `limited_together`
    looks."""
    return [
        "prlimit", f"--as={limits.memory}", f"--nproc={_of_user(limits.processes)}", f"--fsize={limits.file}",
        "--core=0", "--nofile=512", f"--cpu={BEGIN_S + round(2 * limits.seconds)}", "--",
    ]  # fmt: skip


def _of_user(processes: int) -> int:
    """Return the limit of a user's processes.

    Only this jail's count if it has its own user or, since Linux 5.14, a user namespace. Before, all of the user's
    processes count, so the limit leaves room for those that run now and for other jails; only `limited_together` is
    exact.
    """
    version = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2]))
    if os.geteuid() == 0 or version >= (5, 14):
        return processes
    running = int(Path("/proc/loadavg").read_text().split()[3].partition("/")[2])
    return running + 4 * processes


def unprivileged(user: str) -> list[str]:
    """Return the words with which root begins a command that should run as that user, without any rights."""
    words = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--no-new-privs"]
    return [*words, "--bounding-set=-all", "--inh-caps=-all"]


_users = count()


def own_user() -> str:
    """Return a user number for one jail. Linux limits processes per user, and one jail must not use up another's
    share. The numbers are those that systemd reserves for temporary users. Graders running beside this one have
    other process numbers."""
    return str(61184 + (64 * os.getpid() + next(_users) % 64) % 4336)
