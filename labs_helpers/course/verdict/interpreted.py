"""Try an answer in Triton's interpreter from a process that uses a GPU, with the help of another process."""

from __future__ import annotations

import importlib
from collections.abc import Iterator

from labs_helpers.compile.interpreter_process import call_interpreted
from labs_helpers.course.cells import running_shell
from labs_helpers.course.verdict.wrong import Wrong


def verify_interpreted(exercise, student, timeout: float = 120) -> Iterator[str]:
    """Yield the lines of `exercise.verify(student)` from a process with the interpreter; raise its Wrong."""
    place = exercise.trial.__module__, exercise.id, running_shell() is not None
    lines, wrong = call_interpreted(_verify, student, *place, timeout=timeout)
    yield from (f"{line}  (interpreter)" for line in lines)
    if wrong is not None:
        raise wrong


def _verify(student, module: str, exercise_id: str, pictured: bool) -> tuple[list[str], Wrong | None]:
    from labs_helpers.course.scoreboard import SCORES

    importlib.import_module(module)
    return SCORES.exercises[exercise_id].tried(student, pictured)
