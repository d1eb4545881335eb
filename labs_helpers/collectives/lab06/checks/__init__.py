"""The checks of lab 06, called in its notebook as `check.name(name)`."""

from labs_helpers.collectives.lab06.checks.cost import fit_cost
from labs_helpers.collectives.lab06.checks.exchange import pairwise_alltoall
from labs_helpers.collectives.lab06.checks.first_two import naive_allreduce, ring_shift
from labs_helpers.collectives.lab06.checks.halving import recursive_halving
from labs_helpers.collectives.lab06.checks.rings import ring_allreduce, ring_reduce_scatter
from labs_helpers.collectives.lab06.checks.shared import shared_memory_allreduce
from labs_helpers.course.scoreboard import summary

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
