"""Run a command and end everything it started: python keeper.py CALLER COMMAND ARGUMENT...

CALLER is the process id of the process that started this one; its death ends everything. With 0 nobody is watched. The
kernel makes this process the parent of orphaned descendants (Linux: a child subreaper), so it also finds those that
have their own session and environment. It ends as the command does: with its status, or by its signal. It imports
little, because every run waits for its start.
"""

import ctypes
import os
import signal
import sys
import time

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # of linux/prctl.h
GRACE_S = 2.0  # between SIGTERM and SIGKILL; below process.GRACE_S, which comes after it


def main() -> int:
    caller, command = int(sys.argv[1]), sys.argv[2:]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)  # the command would inherit SIG_IGN
    signal.signal(signal.SIGUSR1, _caller_died)
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    if caller:
        prctl(PR_SET_PDEATHSIG, int(signal.SIGUSR1), 0, 0, 0)
        if os.getppid() != caller:  # the caller died before this process could watch it
            return 1
    # Python ignores these two, and the command would inherit that.
    child = os.posix_spawn(command[0], command, os.environ, setsigdef=(signal.SIGPIPE, signal.SIGXFSZ))
    ended, status = os.waitpid(-1, 0)
    while ended != child:
        ended, status = os.waitpid(-1, 0)
    _end_descendants(time.monotonic() + GRACE_S)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _caller_died(*_: object) -> None:
    _end_descendants(0)
    os._exit(1)


def _end_descendants(kill_from: float) -> None:
    """Send SIGTERM once, and SIGKILL from the time `kill_from` on, until no descendant is left."""
    told: set[int] = set()
    while living := descendants():
        kill = time.monotonic() > kill_from
        for pid in living if kill else living - told:
            try:
                os.kill(pid, signal.SIGKILL if kill else signal.SIGTERM)
            except ProcessLookupError:
                pass
        told |= living
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.005)


def descendants() -> set[int]:
    """Return the living processes below this one."""
    parents = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, parent = file.read().rpartition(")")[2].split()[:2]
        except OSError:  # it ended in the meantime
            continue
        if state not in "ZX":
            parents[int(name)] = int(parent)
    found: set[int] = set()
    more = {os.getpid()}
    while more:
        more = {pid for pid, parent in parents.items() if parent in more} - found
        found |= more
    return found


if __name__ == "__main__":
    sys.exit(main())
