"""Runs an answer on practice ranks with groups; whatever goes wrong comes back as a Wrong."""

from __future__ import annotations

import copy
from collections.abc import Callable

from labs_helpers.collectives.practice import Deadlock, PracticeTimeout, RankFailed
from labs_helpers.collectives.practice.groups import GroupRun, practice_groups
from labs_helpers.course.verdict import Wrong, cause_of, describe_error

LIMIT_S = 5
ONE_RANK = "some ranks call it and others do not: it stands in an if, or behind a return, that not all ranks reach"
CAUSES = (  # of a rank's error, as in the engine's tables
    (r"^BufferError", "a transposed or sliced view; MPI sends one run of memory: np.ascontiguousarray makes one"),
    (r"^Mismatch: rank \d+ calls", "which collective comes next depends on the rank"),
)


def on_groups(case: str, student, call: Callable, own: list[tuple]) -> GroupRun:
    """`call(student, comm, *own[rank])` on as many practice ranks as there are arguments, of which each gets a copy.

    Raises Wrong for a deadlock, an error of a rank, and a loop that does not end.
    """
    own = copy.deepcopy(own)
    try:
        return practice_groups(lambda comm: call(student, comm, *own[comm.rank]), len(own), timeout=LIMIT_S)
    except Deadlock as deadlock:
        raise Wrong(case, f"a deadlock: {deadlock}", cause=ONE_RANK if _one_ended(deadlock) else ()) from None
    except RankFailed as failed:
        wrong = describe_error(student, failed.error)
        cause = cause_of(wrong.found, CAUSES) or wrong.causes
        raise Wrong(case, f"rank {failed.rank} raised {wrong.found}", cause=cause) from None
    except PracticeTimeout as error:
        raise Wrong(case, str(error)) from None


def _one_ended(deadlock: Deadlock) -> bool:
    return any(rank.ended for rank in deadlock.ranks)
