"""Replace MPI.COMM_WORLD on practice ranks by the ranks of their run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from labs_helpers.launch.flavour import find_mpi


@contextmanager
def practice_world() -> Iterator[Callable]:
    """Yield enter(comm), which makes `comm` the COMM_WORLD of the calling thread until the end of the block."""
    mine, mpi = threading.local(), find_mpi()
    real = None if mpi is None else mpi.COMM_WORLD

    class World:
        def __getattr__(self, name):
            return getattr(getattr(mine, "comm", real), name)

    def enter(comm):
        mine.comm = comm

    if mpi is not None:
        mpi.COMM_WORLD = World()
    try:
        yield enter
    finally:
        if mpi is not None:
            mpi.COMM_WORLD = real
