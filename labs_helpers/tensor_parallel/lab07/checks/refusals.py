"""Check the refusals of exercises 2 and 3: every rank raises ValueError before any rank waits for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks

SILENT = "after return or print the caller continues without an error; raise ValueError(…)"
EVERY = "every rank knows the sizes, so all have to raise, without if rank == …; otherwise the others wait or continue"
BEFORE = "the argument checks come after it; put them first, before any rank starts to wait"
ERRORS = (
    (r"^AssertionError", "assert raises AssertionError, and `python -O` skips it: raise ValueError(…)"),
    (r"\braise ", "it raises a different type of error; callers expect ValueError"),
    (r"^KeyError: ", "the dict has no such entry; check before you look it up"),
)


class _Watched:
    """A communicator that records which of its methods are used."""

    def __init__(self, comm: Any, called: list[str]):
        self._comm, self._called = comm, called

    def __getattr__(self, name: str):
        value = getattr(self._comm, name)
        if name not in ("Get_rank", "Get_size", "rank", "size"):
            self._called.append(name)
        return value


def expect_refused(
    student: Callable, call: Callable, what: str, own: Sequence[tuple], cause: Callable[[list], str] | str
) -> None:
    """Raise Wrong unless `call(student, comm, *own[rank])` raises ValueError on every rank and uses no method of comm.

    cause: the cause to name if nothing is raised, or a function that derives it from the ranks' results.
    """
    outcomes = [SimpleNamespace(answer=None, error=None, called=[], ended=False) for _ in own]

    def on_rank(answer, comm, *arguments) -> None:
        mine = outcomes[comm.rank]
        try:
            mine.answer = call(answer, _Watched(comm, mine.called), *arguments)
        except Exception as error:
            mine.error = error
        mine.ended = True

    with suppress(Wrong):  # if some ranks wait forever, their outcomes show it
        on_ranks("", student, on_rank, own)
    for rank, one in enumerate(outcomes):
        if one.error is not None and not isinstance(one.error, ValueError):
            wrong = describe_error(student, one.error, errors=ERRORS)
            found = f"rank {rank} raised {wrong.found}\nexpected ValueError"
            raise Wrong(what, found, cause=wrong.causes) from one.error
    refused = [rank for rank, one in enumerate(outcomes) if one.error is not None]
    others = [rank for rank in range(len(own)) if rank not in refused]
    if not refused:
        answers = [one.answer for one in outcomes]
        silent = all(answer is None or _is_error(answer) for answer in answers)
        known = SILENT if silent else cause(answers) if callable(cause) else cause
        raise Wrong(what, "nothing is raised; expected ValueError", cause=known)
    if others:
        one = outcomes[others[0]]
        does = "continues" if one.ended else f"waits in {one.called[-1] if one.called else 'a loop'}"
        raise Wrong(what, f"rank {refused[0]} raises ValueError, and rank {others[0]} {does}", cause=EVERY)
    for rank, one in enumerate(outcomes):
        if one.called:
            found = f"rank {rank} calls {one.called[0]} before it raises ValueError; raise it before any communication"
            raise Wrong(what, found, cause=BEFORE)


def _is_error(answer: Any) -> bool:
    return isinstance(answer, Exception) or (isinstance(answer, type) and issubclass(answer, Exception))
