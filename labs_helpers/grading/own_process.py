"""Run a student's own job on their own machine, in a separate process with a time limit and without a jail."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from labs_helpers.grading.cases import cases_in_all
from labs_helpers.grading.judged import judged
from labs_helpers.labs import ROOT, Lab, lab
from labs_helpers.launch.process import ProcessFailed, ProcessTimeout, run
from labs_helpers.measure.machine import prepare_triton

SECONDS = 60.0  # that an answer may take, as in grading
START_S = 30.0  # that Python, torch and Triton may take before


def in_a_process(chosen: Lab, job: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict of `judged` on the job; for a job without a source, {"cases": the number of its exercise's
    cases}."""
    failed: dict[str, Any] = {"status": "wrong", "lines": [], "message": "", "cases": None}
    with tempfile.TemporaryDirectory(prefix="check-") as folder:
        told = Path(folder, "told.json")
        env = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "labs_helpers.grading.own_process", chosen.number, str(told)]
        try:
            run(command, timeout=START_S + SECONDS, env=env, cwd=folder, input=json.dumps(job))
            return dict(json.loads(told.read_text()))
        except ProcessTimeout:
            return failed | {"message": f"did not end within {SECONDS:g} s"}
        except (ProcessFailed, OSError, ValueError) as error:
            output = error.output.strip()[-300:] if isinstance(error, ProcessFailed) else ""
            return failed | {"message": f"the process that ran it ended without a word\n{output}".rstrip()}


def main(number: str, told: str) -> None:
    prepare_triton()
    chosen, job = lab(number), json.loads(sys.stdin.read())
    if "source" in job:
        found = judged(chosen, job, SECONDS)
    else:
        found = {"cases": cases_in_all(chosen, job["exercise"])}
    Path(told).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
