"""Judge answers in one jail: the check's verdict, and the values for hidden inputs."""

from __future__ import annotations

import ast
import builtins
import json
import secrets
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from typing import Any

import labs_helpers
from labs_helpers.grading.cases import own_answers
from labs_helpers.grading.hidden import key_of
from labs_helpers.grading.jails.bubblewrap import LIMITS, Limits, run_in_jail
from labs_helpers.grading.jails.given_sources import hidden_folders, hidden_sources
from labs_helpers.grading.jails.memory import MEMORY, status_of
from labs_helpers.grading.reading.lab_imports import used_by
from labs_helpers.grading.reading.own_cells import OwnCells
from labs_helpers.grading.reading.submission import Answer
from labs_helpers.labs import LABS, Lab
from labs_helpers.launch.process import ProcessFailed, ProcessStopped

RIGHT, WRONG, CRASHED, TIMEOUT, FAILED = "right", "wrong", "crashed", "timeout", "failed"
REFUSED = "refused"
START_S = 30.0  # that Python, torch and Triton may take to begin in a jail on a busy machine
STARTER = "from labs_helpers.grading.jails.inside import main; main()"
SHOWN_ALONE = "right in its check, and not for inputs that it does not show"


@dataclass(frozen=True)
class Verdict:
    """The verdict on one answer.

    status: RIGHT, WRONG, CRASHED (the process died), `memory.MEMORY` (it needed too much), TIMEOUT, FAILED (the check
    itself failed) or REFUSED (one of its kernels is not launched). lines: of the cases that passed. message: the
    check's words for the student. values: for each seed, the results for the hidden inputs, as `values.written` writes
    them; None if there are none. If the answer raised an error, they are the results before it, and `raised` is the
    error's name.
    """

    status: str
    lines: tuple[str, ...] = ()
    message: str = ""
    values: Sequence[Any] = ()
    raised: str = ""


def verdicts(
    answers: Sequence[Answer],
    imports: Iterable[str],
    limits: Limits = LIMITS,
    *,
    seeds: Sequence[int],
    over: Callable[[], object] | None = None,
    run_in: Callable[..., str] = run_in_jail,
) -> list[Verdict]:
    """Judge some answers of one submission in one jail.

    imports: the lab's statements (`imports_of`). seeds: of the hidden inputs. over: called repeatedly; if it returns
    True, the jail is ended with ProcessStopped. run_in: the jail, of `jails.Jail`.

    An answer runs in separate processes (far/), which never contain checks, references or keys of hidden inputs; their
    files are hidden in the jail. The check's words are produced before the hidden inputs are drawn, so they cannot
    reveal these. Of the hidden inputs' results, only values and the name of an error leave the jail.
    """
    if not answers:
        return []
    lab = next(one for one in LABS if one.number == answers[0].shipped.id.partition("/")[0])
    jobs = [_job(lab, answer, imports, seeds) for answer in answers]
    needed = sorted({line for job in jobs for line in job["imports"]})
    sources = hidden_sources()
    # PyTorch's first optimizer imports its compiler, which takes over a second.
    optimizers = any("torch.optim" in text for file, text in sources.items() if f"lab{lab.number}" in file)
    given = {"seconds": limits.seconds, "imports": needed, "optimizers": optimizers}
    messages = [given, *(job | {"sources": sources} for job in jobs)]
    course = Path(labs_helpers.__file__).parent
    readable = [course, course.parent / "results", course.parent / "pyproject.toml"]
    why = "the process that ran it ended without a word"
    try:
        output = run_in([sys.executable, "-c", STARTER], readable, limits, hidden_folders(),
                        input="".join(map(_message, messages)), over=over,
                        timeout=(1 + len(seeds)) * limits.seconds * len(jobs) + START_S)  # fmt: skip
    except ProcessStopped:
        raise
    except ProcessFailed as error:
        output = error.output
        why = f"the process that ran it died: {_besides(output, jobs)[-300:]}"
    told = {line.partition(" ")[0]: line.partition(" ")[2] for line in output.splitlines()[::-1]}  # the first counts
    found = [_verdict(told.get(str(job["token"])), why) for job in jobs]
    if len(jobs) == 1:
        return found
    alone: dict[str, Any] = {"seeds": seeds, "over": over, "run_in": run_in}
    return [  # where one has ended the whole jail, each of those of which nothing was said gets a jail of its own
        one if str(job["token"]) in told else verdicts([answer], imports, limits, **alone)[0]
        for answer, job, one in zip(answers, jobs, found, strict=True)
    ]


def _job(lab: Lab, answer: Answer, imports: Iterable[str], seeds: Sequence[int]) -> dict[str, Any]:
    exercise, own = answer.shipped.id, own_answers(lab)
    earlier = [own[one] for one in takewhile(lambda one: one != exercise, own)]  # a notebook has them there
    needed = OwnCells().needed(earlier, "\n".join((*answer.before, answer.source)))
    answer = replace(answer, before=(*needed, *answer.before))
    asked = {node.attr for node in ast.walk(ast.parse(own.get(exercise, ""))) if isinstance(node, ast.Attribute)}
    return {
        "token": secrets.token_hex(16), "exercise": exercise, "name": answer.shipped.name,
        "keys": [key_of(seed, exercise) for seed in seeds], "imports": used_by(answer, imports),
        "before": list(answer.before), "source": answer.source, "asked": sorted(asked),
    }  # fmt: skip


def _message(content: Mapping[str, Any]) -> str:
    text = json.dumps(content)
    return f"{len(text)}\n{text}"


def _besides(output: str, jobs: Iterable[Mapping[str, Any]]) -> str:
    """Return the printed text without lines about answers, whose values could reveal the hidden inputs."""
    tokens = tuple(str(job["token"]) for job in jobs)
    return "\n".join(line for line in output.splitlines() if not line.startswith(tokens)).strip()


def _verdict(told: str | None, why: str) -> Verdict:
    try:
        found = json.loads(told or "")
        status, lines, message = str(found["status"]), tuple(map(str, found["lines"])), str(found["message"])
        hidden = found.get("hidden") or {"status": RIGHT}
        raised = str(hidden.get("raised", ""))
        raised = raised if raised in vars(builtins) else "an error" if raised else ""  # no other word of it is shown
        if status == RIGHT and hidden["status"] in (TIMEOUT, CRASHED, MEMORY):
            return Verdict(str(hidden["status"]), lines, SHOWN_ALONE)
        return Verdict(status, lines, message, list(hidden.get("values", ())), raised)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Verdict(status_of(CRASHED, why), message=why)
