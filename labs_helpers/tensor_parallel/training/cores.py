"""How the ranks of one machine share its cores. Imports no PyTorch."""

from __future__ import annotations

import os
from typing import Any

from labs_helpers.launch.flavour import own_cores

LOCAL_SIZES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")  # Open MPI's and MPICH's, before MPI has started


def let_others_work() -> None:
    """Before MPI starts: where ranks fill more than half of the cores, one that waits gives its core to others.

    Ranks that spin while they wait are quicker on cores of their own, and many times slower where those for whom they
    wait need the core.
    """
    here = max(int(os.environ.get(name, 1)) for name in LOCAL_SIZES)
    if 2 * here > len(own_cores()):
        os.environ.setdefault("OMPI_MCA_mpi_yield_when_idle", "1")


def count_cores(comm: Any) -> int:
    """Those of this machine that its ranks may run on, all together. Called by every rank."""
    from mpi4py import MPI

    neighbours = comm.Split_type(MPI.COMM_TYPE_SHARED)
    together = set().union(*neighbours.allgather(own_cores()))
    neighbours.Free()
    return len(together)
