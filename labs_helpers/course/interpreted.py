"""Try an answer in Triton's interpreter from a process that drives a GPU: another process does it.

There every load and store is counted, and a stray one ends the run with a message. On the GPU it would be an
illegal memory access that takes the whole notebook's CUDA context with it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from labs_helpers.bench.source import plain, portable_source
from labs_helpers.course.wrong import Wrong
from labs_helpers.launch.process import run


def verify_interpreted(exercise, student, timeout: float = 120) -> Iterator[str]:
    """Yields the lines of `exercise.verify(student)` from a process with the interpreter; raises its Wrong."""
    with tempfile.TemporaryDirectory() as folder:
        source, answer = Path(folder, "answer.py"), Path(folder, "lines.json")
        source.write_text(portable_source(student))
        run([sys.executable, "-m", "labs_helpers.course.interpreted", exercise.trial.__module__, exercise.id,
             str(source), plain(student).__name__, str(answer)],
            timeout=timeout, env={**os.environ, "TRITON_INTERPRET": "1", "LABS_DEVICE": "cpu"})
        told = json.loads(answer.read_text())
    yield from (f"{line}  (interpreter)" for line in told["lines"])
    if told["wrong"] is not None:
        raise Wrong(*told["wrong"])


def main(module: str, exercise_id: str, source: str, name: str, answer: str) -> None:
    from labs_helpers.course.scoreboard import SCORES

    lines, wrong = [], None
    try:
        importlib.import_module(module)
        spec = importlib.util.spec_from_file_location("answer", source)
        student = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(student)
        lines = SCORES.exercises[exercise_id].verify(getattr(student, name))
    except Wrong as error:
        wrong = [error.case, error.message]
    Path(answer).write_text(json.dumps({"lines": lines, "wrong": wrong}))


if __name__ == "__main__":
    main(*sys.argv[1:])
