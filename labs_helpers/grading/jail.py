"""A command in a jail: no network, a read-only system, nobody else's files and processes, and limits on everything.

bubblewrap makes the namespaces; as root the command is then an unprivileged user's. What a jail cannot keep in is said
in `why_not`, and without one nothing of a student's is run.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs_helpers.launch.process import ProcessFailed, run

MEGABYTE = 2**20
NOBODY = "65534"
SYSTEM = ("/usr", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives")


@dataclass(frozen=True)
class Limits:
    """seconds: of the command, by the clock; twice as many of a core. memory: bytes of addresses of each process, and
    half of it for files in memory. processes: with threads."""

    seconds: float = 60.0
    memory: int = 4096 * MEGABYTE
    processes: int = 300
    file: int = 64 * MEGABYTE


LIMITS = Limits()


@cache
def why_not() -> str:
    """Why there is no jail on this machine, with what to do about it; '' where there is one."""
    for program, package in (("bwrap", "bubblewrap"), ("prlimit", "util-linux"), ("setpriv", "util-linux")):
        if not shutil.which(program):
            return f"{program} is not installed: it is in the package {package}"
    try:
        run(in_jail(["/usr/bin/env", "true"]), timeout=20)
    except ProcessFailed as error:
        advice = ""
        if "uid map" in error.output or "Operation not permitted" in error.output:
            advice = (
                "; Ubuntu 24.04 lets nobody but root make user namespaces: give bubblewrap an AppArmor profile with "
                "`userns,`, or grade as root"
            )
        return f"bubblewrap does not work here: {error.output.strip()}{advice}"
    return ""


def in_jail(
    command: Sequence[str], readable: Sequence[Path] = (), limits: Limits = LIMITS, hidden: Sequence[Path] = ()
) -> list[str]:
    """The command that runs `command` in a jail. readable: files and folders that it may read, under their own paths.
    hidden: folders in them that are empty there.

    It starts in an empty /tmp of its own, without this process's environment. Programs are the system's, and this
    Python with its packages.
    """
    python = [Path(prefix) for prefix in dict.fromkeys((sys.prefix, sys.base_prefix)) if not prefix.startswith("/usr")]
    shown = [*python, *(path.resolve() for path in readable)]
    words = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    words += ["--unshare-cgroup-try", "--hostname", "jail", "--clearenv"]
    words += _settings()
    for system in SYSTEM:
        words += ["--ro-bind-try", system, system]
    for folder in ("bin", "sbin", "lib", "lib64"):
        words += ["--symlink", f"usr/{folder}", f"/{folder}"]
    words += ["--proc", "/proc", "--dev", "/dev"]
    for folder in ("/tmp", "/dev/shm"):
        words += ["--perms", "1777", "--size", str(limits.memory // 4), "--tmpfs", folder]
    for parent in _parents(shown):
        words += ["--perms", "0755", "--dir", str(parent)]
    for path in shown:
        words += ["--ro-bind", str(path), str(path)]
    for path in hidden:
        words += ["--size", "4096", "--tmpfs", str(path.resolve())]
    words += ["--remount-ro", "/", "--chdir", "/tmp"]
    return [*words, *_less(limits), *command]


def _settings() -> list[str]:
    """The whole environment inside."""
    environment = {
        "PATH": f"{sys.prefix}/bin:/usr/bin:/bin", "HOME": "/tmp", "TMPDIR": "/tmp", "USER": "nobody",
        "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    return [word for name, value in environment.items() for word in ("--setenv", name, value)]


def _parents(paths: Sequence[Path]) -> list[Path]:
    """The folders above these, outermost first, but for those that are there."""
    above = {parent for path in paths for parent in path.parents} - {Path("/"), Path("/tmp")}
    return sorted((path for path in above if not path.is_relative_to("/usr")), key=lambda path: len(path.parts))


def _less(limits: Limits) -> list[str]:
    """Without rights, and with limits: bwrap's options that are left, and what the command is begun by."""
    held = [
        "prlimit", f"--as={limits.memory}", f"--nproc={limits.processes}", f"--fsize={limits.file}", "--core=0",
        "--nofile=512", f"--cpu={max(1, round(2 * limits.seconds))}", "--",
    ]  # fmt: skip
    if os.geteuid() != 0:
        return ["--unshare-user", "--cap-drop", "ALL", "--disable-userns", "--assert-userns-disabled", "--", *held]
    user = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", "--no-new-privs"]
    return ["--", *user, "--bounding-set=-all", "--inh-caps=-all", *held]
