"""The checks of lab 06, one file per exercise; its notebook calls `check.name(name)`."""

from labs_helpers.collectives.lab06.checks.ex1_ring_shift import ring_shift
from labs_helpers.collectives.lab06.checks.ex2_naive_allreduce import naive_allreduce
from labs_helpers.collectives.lab06.checks.ex3_ring_reduce_scatter import ring_reduce_scatter
from labs_helpers.collectives.lab06.checks.ex4_ring_allreduce import ring_allreduce
from labs_helpers.collectives.lab06.checks.ex5_pairwise_alltoall import pairwise_alltoall
from labs_helpers.collectives.lab06.checks.ex6_fit_cost import fit_cost
from labs_helpers.collectives.lab06.checks.ex7_shared_memory_allreduce import shared_memory_allreduce
from labs_helpers.collectives.lab06.checks.ex8_recursive_halving import recursive_halving
from labs_helpers.course.lab_summary import summary

__all__ = [
    "fit_cost",
    "naive_allreduce",
    "pairwise_alltoall",
    "recursive_halving",
    "ring_allreduce",
    "ring_reduce_scatter",
    "ring_shift",
    "shared_memory_allreduce",
    "summary",
]
