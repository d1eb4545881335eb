"""Run an answer on real ranks; every failure becomes a Wrong."""

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
    """Run `call(student, comm, *own[rank])` on as many ranks as there are arguments, each in its own process.

    Returns the result of each rank. call: a function of a check. timeout: in seconds. cause: of a failure, if the check
    knows it. practised: the practice ranks for an answer that is already in another process. Raises Wrong for an error
    on a rank, for ranks that do not finish, and for an answer that cannot be sent to other processes.
    """
    if hasattr(student, "anew"):  # the answer is in a separate process, which starts one process per rank
        from labs_helpers.course.verdict.practice_ranks import on_practice_ranks

        return on_practice_ranks(case, student, call, own, ranks=practised).results
    import cloudpickle

    from labs_helpers.launch.mpirun import RanksFailed, RanksTimeout, run_on_ranks

    def on_rank(comm, student, own, call):
        return call(student, comm, *own[comm.rank])

    on_rank.__name__ = plain(student).__name__  # the place that an error refers to
    # A function sent by name is imported there together with its package's imports; PyTorch takes seconds.
    for name in {_package(call), _package(plain(student))} & sys.modules.keys():
        cloudpickle.register_pickle_by_value(sys.modules[name])
    try:
        return run_on_ranks(on_rank, len(own), student, own, call, timeout=timeout)
    except (RanksFailed, RanksTimeout) as error:
        same = (
            "real ranks wait where practice ranks did not. Do all ranks make the same calls, whatever the order "
            "in which they arrive?"
        )
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
    """Return the package whose module defines it; '' for a function of a notebook or outside any package."""
    return (function.__module__ or "").rpartition(".")[0]
