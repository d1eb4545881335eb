"""Runs an answer on practice ranks with groups, and on real ones; whatever goes wrong comes back as a Wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from labs_helpers.compile.source import plain, reachable
from labs_helpers.course.own_memory import OnEachRank
from labs_helpers.course.verdict import Wrong, cause_of, describe_error, real_ranks
from labs_helpers.practice import Deadlock, PracticeTimeout, RankFailed
from labs_helpers.practice.groups import GroupRun, practice_groups
from labs_helpers.tensor_parallel.lab07.checks.copies import copied, what_changed
from labs_helpers.tensor_parallel.lab07.checks.practice_world import practice_world

LIMIT_S = 5
REAL_LIMIT_S = 20
ONE_RANK = "some ranks call it and others do not: it stands in an if, or behind a return, that not all ranks reach"
WORLD = "COMM_WORLD has the ranks of all models; this function's are in the communicator that it is given"
WRITTEN = (
    "x += …, x[…] = …, out=x, MPI.IN_PLACE and methods that end in _ write into what the function was given; write "
    "into something new"
)
ENTRIES = "x[i] = …, append, pop and sort change the list that the function was given; make one of its own"
CAUSES = (  # of a rank's error, as in the engine's tables; an exercise's own come before them
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


def on_groups(
    case: str, student, call: Callable, own: list[tuple], *, errors: Sequence = (), kept: Sequence[str] = ()
) -> GroupRun:
    """`call(student, comm, *own[rank])` on as many practice ranks as there are arguments, of which each gets a copy,
    NumPy arrays with the strides that they have.

    errors: (pattern, cause) of error messages that this exercise has and others have not. kept: the names of the first
    arguments, which have to stay as they are. Raises Wrong for a deadlock, an error of a rank, a loop that does not
    end, a kept argument that has changed.
    """
    given = [tuple(map(copied, arguments)) for arguments in own]
    entries = [[list(value) if isinstance(value, list) else None for value in arguments] for arguments in given]
    try:
        with practice_world() as enter:
            own_of = OnEachRank(student)
            run = practice_groups(lambda comm: call(own_of, enter(comm), *given[comm.rank]), len(own), timeout=LIMIT_S)
    except Deadlock as deadlock:
        cause = ONE_RANK if any(rank.ended for rank in deadlock.ranks) else ()
        raise Wrong(case, f"a deadlock: {deadlock}", cause=cause, advice="who waits for whom, and why?") from None
    except RankFailed as failed:
        # Not the engine's own causes, which are Triton's.
        found = describe_error(student, failed.error).found
        sizes_of_world = found.startswith("ValueError") and uses_world(student)
        cause = WORLD if sizes_of_world else cause_of(found, (*errors, *CAUSES))
        advice = "print the shapes before that line" if re.match("ValueError|IndexError", found) else ""
        raise Wrong(case, f"rank {failed.rank} raised {found}", cause=cause, advice=advice) from None
    except PracticeTimeout as error:
        raise Wrong(case, str(error)) from None
    for rank, (before, now, old) in enumerate(zip(own, given, entries, strict=True)):
        for name, *values in zip(kept, before, now, old, strict=False):
            if said := what_changed(name, *values):
                cause = ENTRIES if said.startswith("the list") else WRITTEN
                raise Wrong(case, f"rank {rank}: {said}", cause=cause)
    return run


def on_real_ranks(case: str, student, call: Callable, own: list[tuple]) -> list:
    """The same on real ranks, each a process: what `call` returned on each. Raises Wrong."""
    try:
        return real_ranks.on_real_ranks(case, student, own, call, REAL_LIMIT_S)
    except Wrong as wrong:
        cause = WORLD if uses_world(student) else wrong.causes
        raise Wrong(case, wrong.found, cause=cause, advice=wrong.advice) from None


def uses_world(student) -> bool:
    """Whether the answer, or what it calls, speaks of COMM_WORLD."""
    return any("COMM_WORLD" in plain(part).__code__.co_names for part in reachable(student).values())
