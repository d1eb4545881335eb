"""What exercises 2 and 3 have to refuse: every rank raises ValueError, before any of them waits for another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

from labs_helpers.course.verdict import Wrong, describe_error
from labs_helpers.tensor_parallel.lab07.checks.on_ranks import on_ranks

SILENT = "return and print end in silence, and the caller goes on: raise ValueError(…)"
EVERY = "every rank knows the sizes, so each raises by itself: no if rank == …. Otherwise the others wait, or go on"
BEFORE = "the tests stand behind it; before it they cost nothing, and no rank has begun to wait"
ERRORS = (
    (r"^AssertionError", "assert raises AssertionError, and `python -O` skips it: raise ValueError(…)"),
    (r"\braise ", "another kind of error is raised than the one that is asked for, by which a caller knows it"),
    (r"^KeyError: ", "a dict has no entry for it: test before it is looked up"),
)


class _Watched:
    """A communicator that notes which of its methods are asked for."""

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
    """Raise Wrong unless `call(student, comm, *own[rank])` raises ValueError on every rank, and has called nothing.

    cause: where nothing is raised, or a function of what the ranks have returned.
    """
    outcomes = [SimpleNamespace(answer=None, error=None, called=[], ended=False) for _ in own]

    def on_rank(answer, comm, *arguments) -> None:
        mine = outcomes[comm.rank]
        try:
            mine.answer = call(answer, _Watched(comm, mine.called), *arguments)
        except Exception as error:
            mine.error = error
        mine.ended = True

    with suppress(Wrong):  # where some wait for ever, the outcomes tell
        on_ranks("", student, on_rank, own)
    for rank, one in enumerate(outcomes):
        if one.error is not None and not isinstance(one.error, ValueError):
            wrong = describe_error(student, one.error, errors=ERRORS)
            found = f"rank {rank} raised {wrong.found}\nValueError is asked for"
            raise Wrong(what, found, cause=wrong.causes) from one.error
    refused = [rank for rank, one in enumerate(outcomes) if one.error is not None]
    others = [rank for rank in range(len(own)) if rank not in refused]
    if not refused:
        answers = [one.answer for one in outcomes]
        silent = all(answer is None or _is_error(answer) for answer in answers)
        known = SILENT if silent else cause(answers) if callable(cause) else cause
        raise Wrong(what, "nothing is raised; ValueError is asked for", cause=known)
    if others:
        one = outcomes[others[0]]
        does = "goes on" if one.ended else f"waits in {one.called[-1] if one.called else 'a loop'}"
        raise Wrong(what, f"rank {refused[0]} raises ValueError, and rank {others[0]} {does}", cause=EVERY)
    for rank, one in enumerate(outcomes):
        if one.called:
            found = f"rank {rank} calls {one.called[0]} before it raises ValueError; nothing may be sent before"
            raise Wrong(what, found, cause=BEFORE)


def _is_error(answer: Any) -> bool:
    return isinstance(answer, Exception) or (isinstance(answer, type) and issubclass(answer, Exception))
