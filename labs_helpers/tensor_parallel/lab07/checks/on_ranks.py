"""Run lab 07's answers on practice ranks, and explain their error messages."""

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
    "it keeps something from one call to the next (a buffer, a mask, a communicator) in a global variable, a default "
    "argument or an attribute; each call has to create its own"
)
WORLD = "COMM_WORLD contains the ranks of all models; use the communicator that the function receives"


def of_world(student) -> str:
    """Return WORLD if the answer or a function that it calls names COMM_WORLD; else ''."""
    return WORLD if any("COMM_WORLD" in plain(part).__code__.co_names for part in reachable(student).values()) else ""


def has_sizes_of_world(found: str, student, size: int) -> bool:
    return found.startswith("ValueError") and bool(of_world(student))


ERRORS = (  # (pattern or function, cause); an exercise's own pairs come first
    (has_sizes_of_world, WORLD),
    (r"^AttributeError: these practice ranks know", "the function's description names the methods that it needs"),
    (
        r"^NameError: name '(MPI|comm|world|COMM_WORLD)'",
        "reach the other ranks through the communicator that the function receives",
    ),
)


on_ranks = partial(on_practice_ranks, ranks=practice_groups, messages=ERRORS)


def expect_anew(case: str, student: Callable, call: Callable, first: Sequence[tuple], then: Sequence[tuple]) -> str:
    """Return a line to print; raise Wrong unless a second call keeps the first result and repeats its own result alone.

    call: as for `on_ranks`; it returns numbers, arrays or tensors, or a list of these. first, then: each rank's
    arguments in the first and in the second call.
    """

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
            raise Wrong(case, f"rank {rank}: {place} has changed after the second call", cause=KEPT)
        if not Comparison("").same([second], [alone[rank]]):
            raise Wrong(case, f"rank {rank}'s second result differs from its result without the first call", cause=KEPT)
    return f"{case}: the second leaves the first result unchanged"
