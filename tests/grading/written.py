"""Write submissions with given answers in a lab's cells, and count the cases that an answer passes."""

from __future__ import annotations

import ast
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

from labs_helpers.authoring.references import reference, solved_cell
from labs_helpers.compile.source import plain
from labs_helpers.grading.course_answers import CourseAnswer
from labs_helpers.grading.hidden import key_of
from labs_helpers.grading.hidden.answer_values import values
from labs_helpers.grading.verdict import WRONG, Verdict
from labs_helpers.labs import Lab
from tests.planted import planted

Changes = Sequence[tuple[str, str]]


def mark_of(cell: Mapping[str, Any]) -> str:
    """'02/3' of its exercise's cell, '02/3-check' of its check's, '' of any other."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "").replace("-", "/", 1)


def with_answers(lab: Lab, sources: Mapping[str, str]) -> dict[str, Any]:
    """The lab's notebook with these sources, by exercise, in its exercise cells."""
    notebook = json.loads(lab.path.read_text())
    for cell in notebook["cells"]:
        cell["source"] = sources.get(mark_of(cell), cell["source"])
    return notebook


def solved(lab: Lab) -> dict[str, str]:
    """Exercise → its reference as a cell."""
    return {one.id: solved_cell(lab, one) for one in lab.exercises()}


def planted_cell(function: Callable[..., Any], changes: Changes) -> str:
    """The cell of a reference in which each (old, new) is replaced, with the imports that this adds to its file."""
    text = Path(inspect.getsourcefile(plain(function)) or "").read_text()
    header = {ast.dump(node) for node in _header(text)}
    for old, new in changes:
        assert old in text, f"{old!r} is not in the reference"
        text = text.replace(old, new)
    lines = text.splitlines()
    for node in _header(text):
        if ast.dump(node) in header:
            lines[node.lineno - 1 : node.end_lineno] = [""] * ((node.end_lineno or 0) - node.lineno + 1)
    return "\n".join(lines).strip("\n")


def _header(text: str) -> list[ast.stmt]:
    """A file's docstring and imports."""
    first, *rest = ast.parse(text).body
    return [first, *(node for node in rest if isinstance(node, ast.Import | ast.ImportFrom))]


def passed(exercise: Any, function: Callable[..., Any]) -> int:
    """How many cases of the exercise's check this answer passes before one that it does not."""
    count = 0
    with suppress(Exception, KeyboardInterrupt):  # also of a time limit
        for _ in exercise._trials(function):
            count += 1
    return count


def right_beside_its_check(lab: Lab, exercise: Any, changes: Changes, folder: Path, seed: int) -> bool:
    """Whether a planted bug is right for any hidden input of the seed, found in this process and in no jail."""
    function = reference(lab, exercise)

    def given(function: Callable[..., Any], seed: int) -> Any:
        with catch_warnings():  # which are errors in tests
            simplefilter("ignore")
            return values({"exercise": exercise.id, "key": key_of(seed, exercise.id)}, function)["values"]

    measure = CourseAnswer((), given(function, seed), "", given(function, seed + 1))
    return measure.partly_right(Verdict(WRONG, values=given(planted(function, folder, *changes), seed)))


def share_passed(lab: Lab, exercise: Any, changes: Changes, folder: Path) -> tuple[int, int]:
    """(cases that a planted bug passes, all cases), found in this process and in no jail."""
    function = reference(lab, exercise)
    return passed(exercise, planted(function, folder, *changes)), passed(exercise, function)
