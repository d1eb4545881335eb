"""Run answers for MPI ranks on practice ranks, without MPI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from labs_helpers.course.own_memory import OnEachRank, names_in
from labs_helpers.grading.hidden import Run, hidden

LIMIT_S = 5.0  # of processor time, for all ranks together


def hidden_on_ranks(exercise: str) -> Callable[[Run], Run]:
    """As `hidden`; the function gets separate memory on each rank."""

    def register(run: Run) -> Run:
        hidden(exercise)(lambda function, draw: run(OnEachRank(function), draw))
        return run

    return register


def names_of(function: Callable[..., Any]) -> set[str]:
    """Return all names that an answer looks up. If one is mpi4py's, import mpi4py without starting MPI.

    Raises ValueError for COMM_WORLD, whose ranks are not those of the answer's communicator.
    """
    names = names_in(function)
    if "COMM_WORLD" in names:
        raise ValueError("MPI.COMM_WORLD is not the communicator that the function is given")
    if {"MPI", "mpi4py", "Request"} & names:
        import mpi4py

        mpi4py.rc(initialize=False, finalize=False)
        from mpi4py import MPI  # noqa: F401  # practice ranks replace MPI.Request
    return names
