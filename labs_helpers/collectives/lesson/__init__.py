"""Lab 06: an exercise a file. `comm` is a communicator of mpi4py's or of practice ranks; `op` is a NumPy ufunc."""

from labs_helpers.collectives.lesson.fit_cost import fit_cost
from labs_helpers.collectives.lesson.naive_allreduce import naive_allreduce
from labs_helpers.collectives.lesson.pairwise_alltoall import pairwise_alltoall
from labs_helpers.collectives.lesson.ring_allreduce import ring_allreduce
from labs_helpers.collectives.lesson.ring_reduce_scatter import ring_reduce_scatter
from labs_helpers.collectives.lesson.ring_shift import ring_shift
from labs_helpers.collectives.lesson.shared_memory_allreduce import shared_memory_allreduce

__all__ = ["fit_cost", "naive_allreduce", "pairwise_alltoall", "ring_allreduce", "ring_reduce_scatter",
           "ring_shift", "shared_memory_allreduce"]
