"""What MPI is to know before it starts, and how the ranks of one machine share its cores. Imports no PyTorch."""

from __future__ import annotations

import os
from typing import Any

from labs_helpers.launch.flavour import BACKGROUND_SUMS, YIELD, own_cores

LOCAL_SIZES = ("OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS")  # Open MPI's and MPICH's, before MPI has started


def prepare_mpi() -> None:
    """Before MPI starts, what Open MPI does well to know, unless the environment has it: which algorithm adds up in the
    background; and where ranks fill more than half of the cores, that one that waits gives its core to others.

    Ranks that spin while they wait are quicker on cores of their own, and many times slower where those for whom they
    wait need the core.
    """
    here = max(int(os.environ.get(name, 1)) for name in LOCAL_SIZES)
    crowded = 2 * here > len(own_cores())
    for name, value in (BACKGROUND_SUMS | (YIELD if crowded else {})).items():
        os.environ.setdefault(name, value)


def count_cores(comm: Any) -> int:
    """Those of this machine that its ranks may run on, all together. Called by every rank."""
    from mpi4py import MPI

    neighbours = comm.Split_type(MPI.COMM_TYPE_SHARED)
    together = set().union(*neighbours.allgather(own_cores()))
    neighbours.Free()
    return len(together)
