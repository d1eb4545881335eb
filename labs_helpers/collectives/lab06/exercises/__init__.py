"""The exercises of lab 06, one file each: stub, answer and reference in one.

`comm` is a communicator of mpi4py or of practice ranks; `op` is a NumPy ufunc.
"""

from labs_helpers.collectives.lab06.exercises.ex1_ring_shift import ring_shift
from labs_helpers.collectives.lab06.exercises.ex2_naive_allreduce import naive_allreduce
from labs_helpers.collectives.lab06.exercises.ex3_ring_reduce_scatter import ring_reduce_scatter
from labs_helpers.collectives.lab06.exercises.ex4_ring_allreduce import ring_allreduce
from labs_helpers.collectives.lab06.exercises.ex5_pairwise_alltoall import pairwise_alltoall
from labs_helpers.collectives.lab06.exercises.ex6_fit_cost import fit_cost
from labs_helpers.collectives.lab06.exercises.ex7_shared_memory_allreduce import shared_memory_allreduce

__all__ = [
    "fit_cost",
    "naive_allreduce",
    "pairwise_alltoall",
    "ring_allreduce",
    "ring_reduce_scatter",
    "ring_shift",
    "shared_memory_allreduce",
]
