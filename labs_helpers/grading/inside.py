"""Runs in the jail: an answer and the course's own check of it. Reads a job from stdin, writes one line to stdout.

    {"token": …, "lab": "02", "exercise": "02/3", "imports": […], "before": […], "source": …}
    token {"status": "right" | "wrong" | "failed", "lines": […], "message": …}

What the answer prints goes nowhere. The token is known before any of its code runs.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    job = json.loads(sys.stdin.read())
    told = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    found = judged(job)
    os.write(told, f"{job['token']} {json.dumps(found)}\n".encode())
    os._exit(0)  # whatever threads and exit handlers there are


def judged(job: dict[str, Any]) -> dict[str, Any]:
    """What the check says of the job's answer."""
    from labs_helpers.course.verdict.wrong import Wrong
    from labs_helpers.labs import LABS
    from labs_helpers.measure.machine import prepare_triton

    prepare_triton()
    lab = next(lab for lab in LABS if lab.number == job["lab"])
    exercises = lab.exercises()
    place = [exercise.id for exercise in exercises].index(job["exercise"])
    exercise = exercises[place]
    names: dict[str, Any] = {"__name__": "__main__"}
    names |= {one.trial.__name__: one.reference for one in exercises[:place] if one.reference is not None}
    for line in job["imports"]:
        exec(line, names)
    for number, cell in enumerate(job["before"]):
        with contextlib.suppress(Exception):  # a cell of the student's that fails in the notebook fails here
            run_cell(cell, f"<cell {number}>", names)
    try:
        run_cell(job["source"], "<answer>", names)
        function = names.get(exercise.trial.__name__)
        if not isinstance(function, Callable) and not hasattr(function, "fn"):  # type: ignore[arg-type]
            return {"status": "wrong", "lines": [], "message": f"the cell does not define {exercise.trial.__name__}"}
    except Exception as error:
        return {"status": "wrong", "lines": [], "message": f"{type(error).__name__}: {error}"}
    try:
        return {"status": "right", "lines": exercise.verify(function), "message": ""}
    except Wrong as wrong:
        return {"status": "wrong", "lines": [], "message": str(wrong)}
    except Exception as error:
        return {"status": "failed", "lines": [], "message": f"{type(error).__name__}: {error}"}


def run_cell(source: str, name: str, names: dict[str, Any]) -> None:
    """Runs it as a cell whose source can be found again: Triton compiles what `inspect` reads."""
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), names)


if __name__ == "__main__":
    main()
