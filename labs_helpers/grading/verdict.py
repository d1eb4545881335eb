"""The check's verdict on answers, from a jail."""

from __future__ import annotations

import builtins
import json
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

import labs_helpers
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits, run_in_jail
from labs_helpers.grading.ranks.broker import ON_RANKS, values_on_ranks
from labs_helpers.grading.reading.lab_imports import used_by
from labs_helpers.grading.reading.submission import Answer
from labs_helpers.launch.process import ProcessFailed, ProcessStopped

RIGHT, WRONG, CRASHED, TIMEOUT, FAILED = "right", "wrong", "crashed", "timeout", "failed"
START_S = 30.0  # that Python, torch and Triton may take to begin in a jail on a busy machine
_ONE_AT_A_TIME = Lock()  # practice ranks count for the whole process
STARTER = "from labs_helpers.grading.jails.inside import main; main()"


@dataclass(frozen=True)
class Verdict:
    """status: RIGHT, WRONG, CRASHED (the process died), `memory.MEMORY` (it needed too much), TIMEOUT, or FAILED: the
    check itself did. lines: of the cases that passed. message: the check's, for the student. values: what the hidden
    inputs gave, as `values.written` has it, None where there are none; or `raised`, the name of an error."""

    status: str
    lines: tuple[str, ...] = ()
    message: str = ""
    values: Any = None
    raised: str = ""


def verdicts(
    answers: Sequence[Answer],
    imports: Iterable[str],
    limits: Limits = LIMITS,
    *,
    seed: int = 0,
    checks: bool = True,
    over: Callable[[], object] | None = None,
    run_in: Callable[..., str] = run_in_jail,
) -> list[Verdict]:
    """What the course's check says of each of some answers of one submission, in one jail. imports: the lab's
    statements (`imports_of`). seed: of the hidden inputs. checks: False for their values alone, in a jail in which no
    reference is; ranks that send messages alone have a jail each (ranks/). over: is asked meanwhile, and ends the jail:
    ProcessStopped. run_in: the jail, of `jails.Jail`.

    The jail can read the course, its references included, and what runs in it could tell the check lies, of the other
    answers too: only answers of which that is not to be feared go there together and are to be believed.
    """
    if not checks and run_in is run_in_jail and {answer.shipped.id for answer in answers} <= ON_RANKS:
        return [_on_ranks(answer, imports, limits, seed) for answer in answers]
    jobs = [
        {"token": secrets.token_hex(16), "exercise": answer.shipped.id, "name": answer.shipped.name,
         "imports": used_by(answer, imports), "before": list(answer.before), "source": answer.source}
        for answer in answers
    ]  # fmt: skip
    lab = answers[0].shipped.id.partition("/")[0]
    given = {"lab": lab, "seconds": limits.seconds, "seed": seed, "checks": checks, "jobs": jobs}
    course = Path(labs_helpers.__file__).parent
    hidden = [] if checks else sorted(course.glob("*/lab*/exercises"))
    readable = [course, course.parent / "results"]
    why = "the process that ran it ended without a word"
    try:
        output = run_in([sys.executable, "-c", STARTER], readable, limits, hidden, input=json.dumps(given), over=over,
                        timeout=limits.seconds * len(jobs) + START_S)  # fmt: skip
    except ProcessStopped:
        raise
    except ProcessFailed as error:
        output = error.output
        why = f"the process that ran it died: {_besides(output, jobs)[-300:]}"
    told = {line.partition(" ")[0]: line.partition(" ")[2] for line in output.splitlines()}
    return [_verdict(told.get(str(job["token"])), why) for job in jobs]


def _besides(output: str, jobs: Iterable[Mapping[str, Any]]) -> str:
    """What was printed, without what is said of answers: their values could tell the hidden inputs."""
    tokens = tuple(str(job["token"]) for job in jobs)
    return "\n".join(line for line in output.splitlines() if not line.startswith(tokens)).strip()


def _on_ranks(answer: Answer, imports: Iterable[str], limits: Limits, seed: int) -> Verdict:
    with _ONE_AT_A_TIME:
        found = values_on_ranks(answer, imports, seed, limits)
    return Verdict(RIGHT, values=found.get("values"), raised=found.get("raised", ""))


def _verdict(told: str | None, why: str) -> Verdict:
    try:
        found = json.loads(told or "")
        lines, message = tuple(map(str, found["lines"])), str(found["message"])
        raised = str(found.get("raised", ""))
        raised = raised if raised in vars(builtins) else "an error" if raised else ""  # no other word of it is shown
        return Verdict(str(found["status"]), lines, message, found.get("values"), raised)
    except (ValueError, KeyError, TypeError):
        return Verdict(CRASHED, message=why)
