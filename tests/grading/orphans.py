"""Find processes that outlive the command that started them, in any session and environment (Linux)."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from labs_helpers.launch.keeper import PR_SET_CHILD_SUBREAPER

LOOK_S, END_S = 0.05, 60.0  # how often it is looked; how long what was told to end may take


@contextmanager
def parent_of_orphans() -> Iterator[None]:
    """Whatever outlives the command becomes a child of this process, which it is found by."""
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def outlived(known: Collection[int]) -> list[str]:
    """The commands of children, but for those known before, that are there END_S from now on. They are ended."""
    deadline = monotonic() + END_S
    while (
        left := {pid: command for pid, command in children().items() if pid not in known}
    ) and monotonic() < deadline:
        sleep(LOOK_S)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return list(left.values())


def children() -> dict[int, str]:
    """Living ones, by their id; dead ones are taken leave of."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        for pid in map(int, (task / "children").read_text().split()):
            if os.waitpid(pid, os.WNOHANG)[0] == 0:
                found[pid] = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    return found
