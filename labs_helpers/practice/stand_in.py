"""Replace MPI.Request while practice ranks run."""

from __future__ import annotations

from collections.abc import Callable

from labs_helpers.launch.flavour import find_mpi


def stand_in(kind: type) -> Callable[[], None] | None:
    """Replace MPI.Request by `kind(MPI.Request)` if MPI is imported; return a function that undoes this, or None."""
    mpi = find_mpi()
    if mpi is None:
        return None
    real = mpi.Request
    mpi.Request = kind(real)
    return lambda: setattr(mpi, "Request", real)
