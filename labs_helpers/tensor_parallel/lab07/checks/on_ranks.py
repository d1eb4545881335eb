"""How lab 07 runs answers on ranks, and what its error messages mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.verdict import Wrong, on_practice_ranks
from labs_helpers.course.verdict.copies import what_changed
from labs_helpers.course.verdict.trees import Comparison
from labs_helpers.practice.groups import practice_groups

KEPT = (
    "something is kept from one call to the next, in a global variable, a default argument or an attribute: a buffer, "
    "a mask, a communicator; each call makes its own"
)
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


def expect_anew(case: str, student: Callable, call: Callable, first: Sequence[tuple], then: Sequence[tuple]) -> str:
    """A line; raises Wrong unless a second call leaves what the first one returned, and gives what it gives alone.

    call: as of `on_ranks`; returns numbers, arrays or tensors, or a list of these. first, then: what each rank is given
    in the one call and in the other."""

    def both(answer: Callable, comm: Any, one: tuple, two: tuple) -> tuple[list, list, Any]:
        returned = [call(answer, comm, *one)]
        copies = deepcopy(returned)
        return copies, returned, call(answer, comm, *two)

    alone = on_ranks(case, student, call, then).results
    for rank, (before, after, second) in enumerate(
        on_ranks(case, student, both, list(zip(first, then, strict=True))).results
    ):
        if changed := what_changed("returned", before, after):
            place = changed.partition(" ")[0].replace("returned[0]", "the first result")
            raise Wrong(case, f"rank {rank}: {place} is no longer the same after the second call", cause=KEPT)
        if not Comparison("").same([second], [alone[rank]]):
            raise Wrong(case, f"rank {rank}'s second result is not what it is without the first call", cause=KEPT)
    return f"{case}: the second leaves what the first one returned"
