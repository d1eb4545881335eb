"""What an answer for MPI's ranks finds on practice ranks, where no MPI runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labs_helpers.course.own_memory import OnEachRank, names_in
from labs_helpers.grading.hidden import Run, hidden

LIMIT_S = 5.0  # of processor time, for all ranks together


def hidden_on_ranks(exercise: str) -> Callable[[Run], Run]:
    """As `hidden`, of a function that has memory of its own on each rank."""

    def register(run: Run) -> Run:
        hidden(exercise)(lambda function, draw: run(OnEachRank(function), draw))
        return run

    return register


def names_of(function: Callable[..., Any]) -> set[str]:
    """All that an answer looks up. If it is something of mpi4py's, then that can be imported without a start of MPI.

    ValueError where it is COMM_WORLD, whose ranks are not those of the communicator that the answer is given.
    """
    names = names_in(function)
    if "COMM_WORLD" in names:
        raise ValueError("MPI.COMM_WORLD is not the communicator that the function is given")
    if {"MPI", "mpi4py", "Request"} & names:
        import mpi4py

        mpi4py.rc(initialize=False, finalize=False)
        from mpi4py import MPI  # noqa: F401  # practice ranks put their own requests in the place of MPI.Request
    return names
