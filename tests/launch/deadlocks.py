"""Deadlocks and dying ranks for the tests of launch. Each rank reports its arrival in a file."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from labs_helpers.launch import process
from labs_helpers.launch.mpirun import run_on_ranks
from tests.processes import eventually


def arrive(folder, comm) -> int:
    part = Path(folder, f"{comm.rank}.part")
    part.write_text(str(os.getpid()))
    part.rename(Path(folder, f"{comm.rank}.pid"))
    return comm.rank


def arrived(folder, ranks) -> list[int]:
    """The ranks' process numbers; waits until all have arrived."""
    files = [Path(folder, f"{rank}.pid") for rank in range(ranks)]
    assert eventually(lambda: all(file.exists() for file in files))
    return [int(file.read_text()) for file in files]


def everybody_receives_first(comm, folder):
    comm.recv(source=(arrive(folder, comm) + 1) % comm.size)


def one_rank_misses_the_barrier(comm, folder):
    if arrive(folder, comm):
        comm.Barrier()
    else:
        comm.recv(source=comm.size - 1)


def spins(comm, folder):
    while True:
        arrive(folder, comm)


DEADLOCKS = [everybody_receives_first, one_rank_misses_the_barrier, spins]


def killed(comm, folder, victim):
    if arrive(folder, comm) == victim:
        arrived(folder, comm.size)
        os.kill(os.getpid(), signal.SIGKILL)
    comm.recv(source=victim)


def expire_on_arrival(monkeypatch, folder, ranks) -> None:
    """The time limit of a run expires as soon as all ranks have arrived."""
    wait = process._wait

    def expire(popen, timeout, over):
        if "worker.py" not in str(popen.args):
            return wait(popen, timeout, over)
        arrived(folder, ranks)
        raise subprocess.TimeoutExpired(popen.args, timeout)

    monkeypatch.setattr(process, "_wait", expire)


def left(token: str) -> list[str]:
    """The living processes with this text in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
            if state not in "ZX" and token.encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


if __name__ == "__main__":
    run_on_ranks(everybody_receives_first, 3, sys.argv[1], timeout=600)
