"""MPI collectives built from point-to-point messages and shared memory, with mpi4py's signatures; lab 06 teaches
them."""

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.counting import CountingComm
from labs_helpers.collectives.interface import ALGORITHMS, allgather, allreduce, alltoall, broadcast, reduce_scatter

__all__ = [
    "ALGORITHMS",
    "CountingComm",
    "allgather",
    "allreduce",
    "alltoall",
    "broadcast",
    "chunk_bounds",
    "reduce_scatter",
]
