"""Runs an answer on real ranks; whatever goes wrong comes back as a Wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable

from labs_helpers.compile.pickled import cannot_be_sent
from labs_helpers.compile.source import plain
from labs_helpers.course.verdict.wrong import Wrong
from labs_helpers.practice.groups import practice_groups


def on_real_ranks(
    case: str,
    student,
    call: Callable,
    own: list[tuple],
    *,
    timeout: float = 20,
    cause: str = "",
    practised: Callable = practice_groups,
) -> list:
    """`call(student, comm, *own[rank])` on as many ranks as there are arguments, each a process.

    Returns what it returned on each of them. call: a function of a check. timeout: in seconds. cause: of what fails,
    where the check knows it. Raises Wrong for an error of a rank, for ranks that do not end, and for an answer that
    cannot be sent to other processes. practised: the practice ranks for an answer that is in another process already.
    """
    if hasattr(student, "anew"):  # an answer in a process of its own, which has one for each rank
        from labs_helpers.course.verdict.practice_ranks import on_practice_ranks

        return on_practice_ranks(case, student, call, own, ranks=practised).results
    import cloudpickle

    from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, run_on_ranks

    def on_rank(comm, student, own, call):
        return call(student, comm, *own[comm.rank])

    on_rank.__name__ = plain(student).__name__  # of which an error speaks
    # What travels by name is imported there, with all that its package imports: PyTorch, which takes seconds.
    for name in {_package(call), _package(plain(student))} & sys.modules.keys():
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        return run_on_ranks(on_rank, len(own), student, own, call, timeout=timeout)
    except (RanksFailed, RanksTimeout) as error:
        same = "real ranks wait where practice ranks did not. Do all make the same calls whatever order they come in?"
        raise Wrong(case, str(error), cause=cause or (same if isinstance(error, RanksTimeout) else "")) from None
    except Exception as error:
        if "pickle" not in f"{type(error).__name__} {error}":
            raise
        raise Wrong(
            case,
            f"{type(error).__name__}: {error}\n{cannot_be_sent(student)}",
            cause=cause,
        ) from None


def _package(function) -> str:
    """The package whose module defines it; '' for a function of a notebook or of no package."""
    return (function.__module__ or "").rpartition(".")[0]
