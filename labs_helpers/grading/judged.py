"""Run one answer through the course's own check in this process: in grading's jail, or at its author's home."""

from __future__ import annotations

import contextlib
import io
import linecache
from collections.abc import Callable
from typing import Any

from labs_helpers.course.own_memory import made_anew
from labs_helpers.course.time_limit import TimeLimit, time_limit

ANSWER = "<answer>"  # the name of its cell
SHARE = 0.9  # the check's share of the answer's time; the rest is for naming the line of a loop


Made = Callable[[dict[str, Any], dict[str, Any], float], tuple[Any, Callable[[], Any]]]


class Refused(ValueError):
    """An answer, or a message from it, is not accepted; the text says why."""


def result(status: str, message: str = "", lines: list[str] | None = None) -> dict[str, Any]:
    return {"status": status, "lines": lines or [], "message": message}


def judged(lab: Any, job: dict[str, Any], seconds: float, made: Made | None = None) -> dict[str, Any]:
    """Return the verdict of the check of job["exercise"] on job["source"], a cell that follows the student's own
    job["before"] and the lab's statements job["imports"]. lines: the cases that were right before a wrong one.
    seconds: this process's time. made: as `made_here`."""
    exercises = lab.exercises()
    place = [exercise.id for exercise in exercises].index(job["exercise"])
    exercise = exercises[place]
    earlier = (one for one in exercises[:place] if one.reference is not None)
    known: dict[str, Any] = {one.trial.__name__: one.reference for one in earlier}
    try:
        function, again = (made or made_here)(job, known, seconds)
    except Refused as error:
        return result("refused", str(error))
    except (Exception, SystemExit) as error:
        return result("wrong", f"{type(error).__name__}: {error}")
    if not isinstance(function, Callable) and not hasattr(function, "fn"):  # type: ignore[arg-type]
        return result("wrong", f"the cell does not define {exercise.trial.__name__}")
    try:
        with time_limit(SHARE * seconds), made_anew(function, again):
            lines, wrong = exercise.tried(function)
        if lost := getattr(function, "lost", ""):
            return result("crashed", f"the process that ran it: {lost}", lines)
        if wrong is None:
            return result("right", lines=lines)
        return result("timeout" if isinstance(wrong.__cause__, TimeLimit) else "wrong", str(wrong), lines)
    except (Exception, TimeLimit) as error:
        return result("failed", f"{type(error).__name__}: {error}")


def made_here(job: dict[str, Any], known: dict[str, Any], seconds: float) -> tuple[Any, Callable[[], Any]]:
    """Return a job's answer and a function that makes it again, in this process, with the names `known`. Raises what
    its cell raises."""
    return defined(job, dict(known)), lambda: defined(job, dict(known))


def defined(job: dict[str, Any], names: dict[str, Any]) -> Any:
    """Run the cells in `names` and return the value of job["name"].

    Raises what job["source"] raises before it binds the name. What it raises later comes from a trial, such as one
    that needs a GPU.
    """
    names["__name__"] = "__main__"
    for line in job["imports"]:
        with contextlib.suppress(ImportError):  # a check's file, which a jail hides
            exec(line, names)
    for number, cell in enumerate(job["before"]):
        with contextlib.suppress(Exception, SystemExit):  # a cell that fails in the notebook fails here
            run_cell(cell, f"<cell {number}>", names)
    before = names.get(job["name"])
    try:
        run_cell(job["source"], ANSWER, names)
    except (Exception, SystemExit):
        if names.get(job["name"]) is before:
            raise
    return names.get(job["name"])


def run_cell(source: str, name: str, names: dict[str, Any]) -> None:
    """Run a cell so that its source can be found again: Triton compiles what `inspect` reads."""
    # Lines as Python counts them: str.splitlines ends one at more characters, and Triton would read another's text.
    lines = io.StringIO(source, newline=None).readlines()
    linecache.cache[name] = len(source), None, lines, name
    exec(compile(source, name, "exec"), names)
