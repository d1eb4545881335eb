"""MPI collectives from point-to-point messages and shared memory, an algorithm a file; and ranks to practise on."""

from labs_helpers.collectives.chunks import chunk_bounds
from labs_helpers.collectives.counting import CountingComm
from labs_helpers.collectives.interface import ALGORITHMS, allgather, allreduce, alltoall, broadcast, reduce_scatter
from labs_helpers.collectives.practice import Deadlock, practice

__all__ = ["ALGORITHMS", "CountingComm", "Deadlock", "allgather", "allreduce", "alltoall", "broadcast",
           "chunk_bounds", "practice", "reduce_scatter"]
