"""The check's verdict on one answer, from a jail of its own."""

from __future__ import annotations

import ast
import json
import secrets
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import labs_helpers
from labs_helpers.grading.jail import LIMITS, Limits, in_jail
from labs_helpers.grading.notebook_file import Cell
from labs_helpers.grading.plain_python import plain_python
from labs_helpers.grading.submission import Answer
from labs_helpers.launch.process import ProcessFailed, ProcessTimeout, run

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


def verdict(answer: Answer, imports: Iterable[str], limits: Limits = LIMITS) -> Verdict:
    """What the course's check says of an answer. imports: the lab's statements (`imports_of`).

    The jail can read the course, its references included, and what runs in it could tell the check lies: only an
    answer of which neither is to be feared is to be believed without a look.
    """
    token = secrets.token_hex(16)
    job = {
        "token": token, "lab": answer.shipped.id.partition("/")[0], "exercise": answer.shipped.id,
        "imports": used_by(answer, imports), "before": list(answer.before), "source": answer.source,
    }  # fmt: skip
    course = Path(labs_helpers.__file__).parent
    command = in_jail([sys.executable, "-c", STARTER], [course, course.parent / "results"], limits)
    try:
        output = run(command, timeout=limits.seconds + START_S, env={}, input=json.dumps(job))
    except ProcessTimeout:
        return Verdict(TIMEOUT, message=f"did not end within {limits.seconds:g} s")
    except ProcessFailed as error:
        return Verdict(CRASHED, message=f"the process that ran it died: {error.output.strip()[-300:]}")
    lines = [line for line in output.splitlines() if line.startswith(f"{token} ")]
    if not lines:
        return Verdict(CRASHED, message="the process that ran it ended without a word")
    told = json.loads(lines[-1].partition(" ")[2])
    return Verdict(told["status"], tuple(told["lines"]), told["message"])


def imports_of(cells: Iterable[Cell]) -> list[str]:
    """The import statements at the top level of a lab's own code cells, in order."""
    found = []
    for cell in cells:
        text, problem = plain_python(cell.source) if cell.code else ("", "")
        nodes = ast.parse(text).body if not problem else []
        found += [ast.unparse(node) for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    return list(dict.fromkeys(found))


def used_by(answer: Answer, imports: Iterable[str]) -> list[str]:
    """Those that bind a name which the answer, or a cell of its author's before it, reads."""
    read = {
        node.id
        for text in (answer.source, *answer.before)
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Name)
    }
    return [line for line in imports if _bound(line) & read]


def _bound(statement: str) -> set[str]:
    (node,) = ast.parse(statement).body
    assert isinstance(node, ast.Import | ast.ImportFrom)
    return {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
