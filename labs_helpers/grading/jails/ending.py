"""End everything that an answer started: in a jail, everybody but this process; elsewhere, its descendants."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress

from labs_helpers.grading.jails.together import PR_SET_CHILD_SUBREAPER, kill_descendants, prctl

NO_JAIL = "LABS_NO_JAIL"  # set where `without_jail` runs it

Ending = Callable[[int], None]


def ending() -> Ending | None:
    """Return a function that ends a child and everything it left behind; None if there is no safe way."""
    if alone():
        return _of_everybody
    if os.environ.get(NO_JAIL):
        prctl(PR_SET_CHILD_SUBREAPER, 1)  # parent of whatever a child leaves behind
        return _of_descendants
    return None


def alone() -> bool:
    """Return True if a signal to everybody would reach only this process's own children, as in a jail.

    The function checks who exists, not what the first process is called: bwrap, appinit, or sinit in Apptainer 1.0 may
    also be the first process of a container in which a person works. A PID namespace created for this process contains
    only the processes above it, and the first of them cannot be ended by a signal from inside. A /proc of another
    namespace has no entry for this process, or another's entry. Then nobody knows who exists, and the result is False.
    """
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return False
        parents = {int(name): _parent(name) for name in os.listdir("/proc") if name.isdigit()}
    except (OSError, ValueError):
        return False
    above, process = set(), os.getpid()
    while process:
        above.add(process)
        process = parents.get(process) or 0
    return 1 in above and {process for process, parent in parents.items() if parent is not None} == above


def _parent(name: str) -> int | None:
    """Return the parent's process id; None if the process has ended."""
    try:
        with open(f"/proc/{name}/stat") as file:
            state, parent = file.read().rpartition(")")[2].split()[:2]
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if state in "ZX" else int(parent)


def _of_everybody(child: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)  # all of the jail's but this one
    os.waitpid(child, 0)


def _of_descendants(child: int) -> None:
    kill_descendants()
    os.waitpid(child, 0)
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
