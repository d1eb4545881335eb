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


CAUSES = (  # of a rank's error
    (has_sizes_of_world, WORLD),
    (
        r"^BufferError: the buffer is not contiguous",
        "a transposed or sliced view; MPI sends one run of memory: np.ascontiguousarray makes one (np.copy, np.array "
        "and astype keep the order that it has in memory)",
    ),
    (r"^AttributeError: these practice ranks know", "the function's description names the methods that it needs"),
    (r"^Mismatch: rank \d+ calls", "which collective comes next depends on the rank"),
    (
        r"^NameError: name '(MPI|comm|world|COMM_WORLD)'",
        "the ranks to talk to are in the communicator that it is given",
    ),
    (
        r"^TypeError: (Cannot interpret '.*' as a data type|empty\(\) takes)",
        "np.empty takes the shape as one tuple: np.empty((2, 3))",
    ),
    (
        r"only integer scalar arrays can be converted|concatenate\(\) got multiple",
        "NumPy joins arrays out of one list: np.concatenate([a, b])",
    ),
    (r"for \+: 'int' and 'tuple'|for \+: 'tuple' and 'int'", "(n) is a number; (n,) is a tuple of one"),
    (r"^ValueError: axes don't match array", "transpose takes as many axes as the array has"),
    (r"'tuple' object is not callable", "shape is a tuple, no function: x.shape[2]"),
    (r"slice indices must be integers|'float' object cannot be interpreted", "/ makes a float; // an integer"),
)


on_ranks = partial(on_practice_ranks, ranks=practice_groups, messages=CAUSES)
