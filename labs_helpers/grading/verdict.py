"""The check's verdict on answers, from a jail."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import labs_helpers
from labs_helpers.grading.jail import LIMITS, Limits, in_jail
from labs_helpers.grading.lab_imports import used_by
from labs_helpers.grading.submission import Answer
from labs_helpers.launch.process import ProcessFailed, ProcessStopped, run

RIGHT, WRONG, CRASHED, TIMEOUT, FAILED = "right", "wrong", "crashed", "timeout", "failed"
START_S = 30.0  # that Python, torch and Triton may take to begin in a jail on a busy machine
STARTER = "from labs_helpers.grading.inside import main; main()"


@dataclass(frozen=True)
class Verdict:
    """status: RIGHT, WRONG, CRASHED (the process died), TIMEOUT, or FAILED: the check itself did. lines: of the cases
    that passed. message: the check's, for the student."""

    status: str
    lines: tuple[str, ...] = ()
    message: str = ""


def verdicts(
    answers: Sequence[Answer],
    imports: Iterable[str],
    limits: Limits = LIMITS,
    over: Callable[[], object] | None = None,
) -> list[Verdict]:
    """What the course's check says of each of some answers of one submission, in one jail. imports: the lab's
    statements (`imports_of`). over: is asked meanwhile, and ends the jail: ProcessStopped.

    The jail can read the course, its references included, and what runs in it could tell the check lies, of the other
    answers too: only answers of which that is not to be feared go there together and are to be believed.
    """
    jobs = [
        {"token": secrets.token_hex(16), "exercise": answer.shipped.id, "imports": used_by(answer, imports),
         "before": list(answer.before), "source": answer.source}
        for answer in answers
    ]  # fmt: skip
    given = {"lab": answers[0].shipped.id.partition("/")[0], "seconds": limits.seconds, "jobs": jobs}
    course = Path(labs_helpers.__file__).parent
    command = in_jail([sys.executable, "-c", STARTER], [course, course.parent / "results"], limits)
    why = "the process that ran it ended without a word"
    try:
        output = run(command, timeout=limits.seconds * len(jobs) + START_S, env={}, input=json.dumps(given), over=over)
    except ProcessStopped:
        raise
    except ProcessFailed as error:
        output = error.output
        why = f"the process that ran it died: {error.output.strip()[-300:]}"
    told = {line.partition(" ")[0]: line.partition(" ")[2] for line in output.splitlines()}
    return [_verdict(told.get(str(job["token"])), why) for job in jobs]


def _verdict(told: str | None, why: str) -> Verdict:
    try:
        found = json.loads(told or "")
        return Verdict(str(found["status"]), tuple(map(str, found["lines"])), str(found["message"]))
    except (ValueError, KeyError, TypeError):
        return Verdict(CRASHED, message=why)
