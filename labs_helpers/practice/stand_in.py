"""Puts something in the place of MPI.Request while practice ranks run."""

from __future__ import annotations

from collections.abc import Callable

from labs_helpers.launch.flavour import find_mpi


def stand_in(kind: type) -> Callable[[], None] | None:
    """`kind(MPI.Request)` stands for MPI.Request, if MPI is imported; returns what undoes it, or None."""
    mpi = find_mpi()
    if mpi is None:
        return None
    real = mpi.Request
    mpi.Request = kind(real)
    return lambda: setattr(mpi, "Request", real)
