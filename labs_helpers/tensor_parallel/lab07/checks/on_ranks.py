"""How lab 07 runs answers on ranks, and what its error messages mean."""

from __future__ import annotations

from functools import partial

from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.verdict import on_practice_ranks
from labs_helpers.practice.groups import practice_groups

WORLD = "COMM_WORLD has the ranks of all models; this function's are in the communicator that it is given"


def of_world(student) -> str:
    """WORLD if the answer, or what it calls, speaks of COMM_WORLD; else ''."""
    return WORLD if any("COMM_WORLD" in plain(part).__code__.co_names for part in reachable(student).values()) else ""


def has_sizes_of_world(found: str, student, size: int) -> bool:
    return found.startswith("ValueError") and bool(of_world(student))


ERRORS = (  # pairs (pattern, cause), and one of a function; those of an exercise come before them
    (has_sizes_of_world, WORLD),
    (r"^AttributeError: these practice ranks know", "the function's description names the methods that it needs"),
    (
        r"^NameError: name '(MPI|comm|world|COMM_WORLD)'",
        "the ranks to talk to are in the communicator that it is given",
    ),
)


on_ranks = partial(on_practice_ranks, ranks=practice_groups, messages=ERRORS)
