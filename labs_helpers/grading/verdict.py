"""The check's verdict on answers, and their values for hidden inputs, each from a jail."""

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
from labs_helpers.grading.hidden import key_of
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits, run_in_jail
from labs_helpers.grading.jails.memory import status_of
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
    inputs gave, as `values.written` has it, None where there are none; where it raised, those before, and the name of
    the error."""

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
    seed: int | None = None,
    apart: bool = False,
    over: Callable[[], object] | None = None,
    run_in: Callable[..., str] = run_in_jail,
) -> list[Verdict]:
    """What the course's check says of each of some answers of one submission, in one jail; with the seed of the hidden
    inputs their values alone, in a jail in which no reference is. imports: the lab's statements (`imports_of`). apart:
    for values, ranks that send messages alone have a jail each (ranks/). over: is asked meanwhile, and ends the jail:
    ProcessStopped. run_in: the jail, of `jails.Jail`.

    What runs beside a check could say in its words whatever it can read: nothing in its jail tells the hidden inputs.
    That jail can read the course, its references included, and what runs in it could tell the check lies, of the other
    answers too: only answers of which that is not to be feared go there together and are to be believed. Where hidden
    inputs are, nothing but values is taken from.
    """
    if apart and seed is not None and run_in is run_in_jail and {answer.shipped.id for answer in answers} <= ON_RANKS:
        return [_on_ranks(answer, imports, limits, seed) for answer in answers]
    jobs = [
        {"token": secrets.token_hex(16), "exercise": answer.shipped.id, "name": answer.shipped.name,
         "key": None if seed is None else key_of(seed, answer.shipped.id), "imports": used_by(answer, imports),
         "before": list(answer.before), "source": answer.source}
        for answer in answers
    ]  # fmt: skip
    lab = answers[0].shipped.id.partition("/")[0]
    given = {"lab": lab, "seconds": limits.seconds, "checks": seed is None, "jobs": jobs}
    course = Path(labs_helpers.__file__).parent
    hidden = [] if seed is None else sorted(course.glob("*/lab*/exercises"))
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
    except (ValueError, KeyError, TypeError, RecursionError):
        return Verdict(status_of(CRASHED, why), message=why)
