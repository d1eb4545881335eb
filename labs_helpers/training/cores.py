"""Set MPI's variables before it starts, and count the cores that a machine's ranks share. Imports no PyTorch."""

from __future__ import annotations

import os
from typing import Any

from labs_helpers.launch.flavour import BACKGROUND_SUMS, YIELD, own_cores

LOCAL_SIZES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")  # set by Open MPI and MPICH before MPI starts


def prepare_mpi() -> None:
    """Set Open MPI's variables before MPI starts, unless the environment sets them.

    They choose the algorithm for background reductions and, if ranks fill more than half of the cores, make waiting
    ranks yield. Spinning ranks are faster on separate cores, but many times slower if the ranks that they wait for need
    the core.
    """
    here = max(int(os.environ.get(name, 1)) for name in LOCAL_SIZES)
    crowded = 2 * here > len(own_cores())
    for name, value in (BACKGROUND_SUMS | (YIELD if crowded else {})).items():
        os.environ.setdefault(name, value)


def count_cores(comm: Any) -> int:
    """Count the cores on which this machine's ranks may run; every rank calls this."""
    from mpi4py import MPI

    neighbors = comm.Split_type(MPI.COMM_TYPE_SHARED)
    together = set().union(*neighbors.allgather(own_cores()))
    neighbors.Free()
    return len(together)
