"""The check's verdict on answers, and their values for hidden inputs, each from a jail."""

from __future__ import annotations

import ast
import builtins
import json
import secrets
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

import labs_helpers
from labs_helpers.compile.source import plain
from labs_helpers.grading.hidden import key_of
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits, run_in_jail
from labs_helpers.grading.jails.memory import status_of
from labs_helpers.grading.reading.lab_imports import used_by
from labs_helpers.grading.reading.submission import Answer
from labs_helpers.labs import LABS, Lab
from labs_helpers.launch.process import ProcessFailed, ProcessStopped

RIGHT, WRONG, CRASHED, TIMEOUT, FAILED = "right", "wrong", "crashed", "timeout", "failed"
REFUSED = "refused"
START_S = 30.0  # that Python, torch and Triton may take to begin in a jail on a busy machine
STARTER = "from labs_helpers.grading.jails.inside import main; main()"


@dataclass(frozen=True)
class Verdict:
    """status: RIGHT, WRONG, CRASHED (the process died), `memory.MEMORY` (it needed too much), TIMEOUT, FAILED: the
    check itself did, or REFUSED: a kernel of it is not launched. lines: of the cases that passed. message: the check's,
    for the student. values: what the hidden inputs gave, as `values.written` has it, None where there are none; where
    it raised, those before, and the name of the error."""

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
    far: Collection[str] = (),
    over: Callable[[], object] | None = None,
    run_in: Callable[..., str] = run_in_jail,
) -> list[Verdict]:
    """What the course's check says of each of some answers of one submission, in one jail; with the seed of the hidden
    inputs their values alone, in a jail in which no reference is. imports: the lab's statements (`imports_of`). far:
    ids of exercises whose answers run in a process of their own, which does not say what becomes of them (far/). over:
    is asked meanwhile, and ends the jail: ProcessStopped. run_in: the jail, of `jails.Jail`.

    What runs beside a check could say in its words whatever it can read: nothing in its jail tells the hidden inputs.
    That jail can read the course, its references included, and what runs in the check's own process could tell it lies,
    of the other answers too: only answers of which that is not to be feared go there together and are to be believed.
    Where hidden inputs are, nothing but values is taken from.
    """
    course = Path(labs_helpers.__file__).parent
    jobs = [
        {"token": secrets.token_hex(16), "exercise": answer.shipped.id, "name": answer.shipped.name,
         "key": None if seed is None else key_of(seed, answer.shipped.id), "imports": used_by(answer, imports),
         "before": list(answer.before), "source": answer.source, **_far(answer, far, seed is None)}
        for answer in answers
    ]  # fmt: skip
    lab = answers[0].shipped.id.partition("/")[0]
    needed = sorted({line for job in jobs for line in job["imports"]})
    given = {"lab": lab, "seconds": limits.seconds, "checks": seed is None, "imports": needed}
    hidden = [] if seed is None else sorted(course.glob("*/lab*/exercises"))
    readable = [course, course.parent / "results", course.parent / "pyproject.toml"]
    why = "the process that ran it ended without a word"
    try:
        lines = "".join(f"{json.dumps(one)}\n" for one in (given, *jobs))
        output = run_in([sys.executable, "-c", STARTER], readable, limits, hidden, input=lines, over=over,
                        timeout=limits.seconds * len(jobs) + START_S)  # fmt: skip
    except ProcessStopped:
        raise
    except ProcessFailed as error:
        output = error.output
        why = f"the process that ran it died: {_besides(output, jobs)[-300:]}"
    told = {line.partition(" ")[0]: line.partition(" ")[2] for line in output.splitlines()[::-1]}  # the first counts
    found = [_verdict(told.get(str(job["token"])), why) for job in jobs]
    if len(jobs) == 1:
        return found
    alone: dict[str, Any] = {"seed": seed, "far": far, "over": over, "run_in": run_in}
    return [  # where one has ended the whole jail, those of which nothing was said have one each
        one if str(job["token"]) in told else verdicts([answer], imports, limits, **alone)[0]
        for answer, job, one in zip(answers, jobs, found, strict=True)
    ]


def _far(answer: Answer, far: Collection[str], checks: bool) -> dict[str, Any]:
    """What a job says of a process of its own for the answer."""
    exercise = answer.shipped.id
    if exercise not in far:
        return {"far": False}
    lab = next(one for one in LABS if one.number == exercise.partition("/")[0])
    earlier = []
    for one in takewhile(lambda one: one.id != exercise, lab.exercises() if checks else ()):
        if one.reference is not None:
            earlier.append((plain(one.reference).__module__, one.trial.__name__))
    return {"far": True, "earlier": earlier, "asked": sorted(asked_for(lab, exercise))}


def asked_for(lab: Lab, exercise: str) -> set[str]:
    """The attributes that the course's own answer asks values for."""
    from labs_helpers.grading.course_answers import own_answers

    tree = ast.parse(own_answers(lab).get(exercise, ""))
    return {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def _besides(output: str, jobs: Iterable[Mapping[str, Any]]) -> str:
    """What was printed, without what is said of answers: their values could tell the hidden inputs."""
    tokens = tuple(str(job["token"]) for job in jobs)
    return "\n".join(line for line in output.splitlines() if not line.startswith(tokens)).strip()


def _verdict(told: str | None, why: str) -> Verdict:
    try:
        found = json.loads(told or "")
        lines, message = tuple(map(str, found["lines"])), str(found["message"])
        raised = str(found.get("raised", ""))
        raised = raised if raised in vars(builtins) else "an error" if raised else ""  # no other word of it is shown
        return Verdict(str(found["status"]), lines, message, found.get("values"), raised)
    except (ValueError, KeyError, TypeError, RecursionError):
        return Verdict(status_of(CRASHED, why), message=why)
