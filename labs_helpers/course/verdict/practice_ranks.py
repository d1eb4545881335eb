"""Run an answer on practice ranks; every failure becomes a Wrong.

    def call(student, group, batch):
        student(batch, group)
        return batch

    run = on_practice_ranks("2 ranks", student, call, [(ones,), (twos,)], ranks=practice_process_groups)
    run.results     # what `call` returned on each rank

Each rank has a separate copy of the answer's global variables, as a process does.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from labs_helpers.course.own_memory import OnEachRank, names_in
from labs_helpers.course.verdict.copies import copied, expect_kept
from labs_helpers.course.verdict.deadlocks import describe_deadlock
from labs_helpers.course.verdict.errors import describe_error
from labs_helpers.course.verdict.messages import mpi
from labs_helpers.course.verdict.threads import one_thread
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.practice import Deadlock, PracticeTimeout, RankFailed, practice
from labs_helpers.practice.collective import Mismatch

LIMIT_S = 5
IN_ORDER = "print the calls of each rank, in order"
SHAPES = "print the shapes before that line"
OF_SHAPES = r"IndexError|[^\n]*(shape|size|dimension|out of range|elements|axis|axes|array)"

# Rows of a condition and its cause. A condition is a pattern, as in `describe_error`, or a function of the text of the
# error, of the answer and of the number of ranks; functions are tried first.
Messages = Sequence[tuple[str | Callable[[str, Any, int], bool], str]]


def on_practice_ranks(
    case: str,
    student: Any,
    call: Callable[..., Any],
    own: Sequence[tuple],
    *,
    ranks: Callable[..., Any],
    errors: Messages = (),
    messages: Messages = (),
    stuck: str | Sequence[str] = (),
    unwaited: str = mpi.UNWAITED,
    kept: Sequence[str] = (),
    copies: bool = True,
    **settings: Any,
) -> Any:
    """Run `call(student, comm, *own[rank])` on as many practice ranks as `own` has entries; return the run.

    ranks: `practice`, `practice_groups` or `practice_process_groups`, which gets the settings. errors: the causes of
    this exercise's error messages, tried before `messages`, those of its lab. stuck: the cause if ranks wait for each
    other or call different collectives. unwaited: the cause if a request has no wait; '' allows that. kept: names of
    the first arguments, which the answer must not change. copies: whether ranks get copies of `own`.

    Raises Wrong for a deadlock, an error on a rank, an endless loop, a message without a receive, a request without a
    wait, and a changed argument. A Wrong with a case that `call` raises passes through unchanged.
    """
    if ranks is practice:
        settings["constants"] = _names(case, student)
    given = [tuple(map(copied, arguments)) if copies else arguments for arguments in own]
    entries = [[list(value) if isinstance(value, list) else None for value in arguments] for arguments in given]
    answer = OnEachRank(student)

    def on_rank(comm: Any, *place_and_own: Any) -> Any:
        return call(answer, comm, *place_and_own[-1])

    try:
        with one_thread(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", "`torch.distributed", FutureWarning)  # about names that 2.13 replaces
            warnings.filterwarnings(
                "ignore", "Full backward hook is firing", UserWarning
            )  # about inputs without a gradient
            run = ranks(on_rank, len(own), given, timeout=LIMIT_S, **settings)
    except Deadlock as deadlock:
        raise describe_deadlock(case, deadlock, stuck) from None
    except RankFailed as failed:
        raise _describe_failure(case, student, failed, len(own), (*errors, *messages), stuck) from None
    except PracticeTimeout as error:
        raise Wrong(case, str(error)) from None
    for lost in getattr(run, "unreceived", ()):
        journey = f"from rank {lost.source} to rank {lost.dest}, {lost.nbytes} bytes"
        raise Wrong(case, f"a message {journey}, was sent but never received")
    if unwaited and run.never_waited:
        first, *others = run.never_waited
        more = f" (and {len(others)} more)" if others else ""
        raise Wrong(case, f"{first} is never waited for{more}", cause=unwaited)
    for rank, values in enumerate(zip(own, given, entries, strict=True)):
        expect_kept(case, rank, kept, *values)
    return run


def _names(case: str, student: Any) -> set[str]:
    """Return all names that an answer looks up. Raises Wrong for COMM_WORLD, which practice ranks do not have."""
    names = names_in(student)
    if "COMM_WORLD" in names:
        found = "the function uses MPI.COMM_WORLD, which contains all ranks; it must work among the ranks of comm"
        raise Wrong(case, found, cause="COMM_WORLD is used instead of the argument comm")
    if "Request" in names:
        from mpi4py import MPI  # noqa: F401  # the answer imports it and must find the practice ranks' MPI.Request there
    return names


def _describe_failure(
    case: str, student: Any, failed: RankFailed, size: int, table: Messages, stuck: str | Sequence[str]
) -> Wrong:
    """Describe the error of a rank, with its cause from `table` or, failing that, from the causes that hold in any
    exercise."""
    if isinstance(error := failed.error, Wrong):
        if error.case:
            return error
        return Wrong(case, f"rank {failed.rank} {error.found}", cause=error.causes, advice=error.advice)
    functions = [row for row in table if callable(row[0])]
    described = describe_error(student, error, errors=[row for row in table if row not in functions])
    found, differ = described.found, isinstance(error, Mismatch)
    fits = (cause for condition, cause in functions if condition(found, student, size))
    cause = (stuck if differ else "") or next(fits, "") or described.causes
    advice = IN_ORDER if differ else SHAPES if re.match(OF_SHAPES, found) else ""
    return Wrong(case, f"rank {failed.rank} raised {found}", cause=cause, advice=advice)
