"""Read a submission to a lab: each exercise's source and the student's own cells before it, found by grade_id.

Checks, tags and outputs of the submission are never used; a changed check is only noted.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from labs_helpers.course.stub import is_attempted
from labs_helpers.grading.reading.notebook_file import Cell, Unreadable, read_cells
from labs_helpers.grading.reading.plain_python import MOST_CHARACTERS, plain_python
from labs_helpers.labs import Lab

CHECK_CHANGED, MISSING, TWICE = "check-changed", "cell-missing", "cell-twice"
MOST_PLACES = 4  # how many cells of one exercise are examined, the last ones
MOST_CODE = 400_000  # characters in code cells; a solved lab has at most 36,000
UNMARKED, OLD, ELSEWHERE = "cell-unmarked", "old-version", "defined-elsewhere"
NEW_CELL, IN_TEXT = "in-new-cell", "in-text-cell"
WHERE = "{name} is defined in a text cell (Markdown); only code cells are graded"
_MARK = re.compile(r"(\d\d)-\d+(?:-check)?")  # the mark of any lab's exercise


@dataclass(frozen=True)
class Shipped:
    """One exercise of the lab as it was handed out. name: of the function that its check takes."""

    id: str  # '02/3'
    name: str
    stub: str
    check: str
    points: int

    @property
    def grade_id(self) -> str:
        return self.id.replace("/", "-")


@dataclass(frozen=True)
class Answer:
    """A student's answer. source: the exercise's cell, or ''. before: the student's own cells above it, in order.
    flags: its oddities. problem: why it cannot be tried, or ''."""

    shipped: Shipped
    source: str
    before: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    problem: str = ""

    @property
    def attempted(self) -> bool:
        return bool(self.source) and _attempted(self.source, self.shipped.name)


def shipped_exercises(lab: Lab) -> list[Shipped]:
    """Return the exercises of the course's own notebook."""
    cells = {cell.grade_id: cell for cell in read_cells(lab.path) if cell.grade_id}
    found = []
    for exercise in lab.exercises():
        mark = exercise.id.replace("/", "-")
        stub, check = cells[mark].source, cells[f"{mark}-check"].source
        found.append(Shipped(exercise.id, exercise.trial.__name__, stub, check, exercise.points))
    return found


def read_submission(path: Path, lab: Lab) -> list[Answer]:
    """Return an Answer to each exercise of the lab. Raises Unreadable if the file is no notebook, is another lab's,
    or holds too much code."""
    ours = {cell.source.strip() for cell in read_cells(lab.path)}
    cells = read_cells(path)
    if (numbers := labs_of(cells)) and lab.number not in numbers:
        raise Unreadable(f"this is lab {' and lab '.join(sorted(numbers))}'s notebook, and not lab {lab.number}'s")
    return answers_in(cells, shipped_exercises(lab), ours)


def labs_of(cells: Iterable[Cell]) -> set[str]:
    """Return the numbers of the labs whose exercises are marked in these cells."""
    return {found[1] for cell in cells if (found := _MARK.fullmatch(cell.grade_id))}


def answers_in(cells: list[Cell], exercises: Iterable[Shipped], ours: set[str]) -> list[Answer]:
    """Return the answers in a submission's cells. ours: the sources of the lab's cells as they were handed out."""
    size = sum(len(cell.source) for cell in cells if cell.code and len(cell.source) <= MOST_CHARACTERS)
    if size > MOST_CODE:  # a longer cell is not parsed, and costs nothing
        raise Unreadable(f"the code cells hold {size:,} characters in all; more than {MOST_CODE:,} are not read")
    exercises = list(exercises)
    marks = {mark for one in exercises for mark in (one.grade_id, f"{one.grade_id}-check")}
    parsed = cache(_parsed)  # each cell once for all exercises, and kept no longer
    return [_answer(one, cells, ours, marks, parsed) for one in exercises]


@dataclass(frozen=True)
class _Code:
    """A cell's Python, or in `problem` why it is none. functions: name → docstring of the functions it defines."""

    text: str
    problem: str
    functions: dict[str, str | None]


def _parsed(source: str) -> _Code:
    text, problem = plain_python(source)
    nodes = [] if problem else [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    return _Code(text, problem, {node.name: ast.get_docstring(node) for node in reversed(nodes)})


def _answer(one: Shipped, cells: list[Cell], ours: set[str], marks: set[str], parsed: Callable[[str], _Code]) -> Answer:
    flags = []
    places = [place for place, cell in enumerate(cells) if cell.code and cell.grade_id == one.grade_id]
    if not places:
        code = [place for place, cell in enumerate(cells) if cell.code]
        places = [place for place in code if one.name in parsed(cells[place].source).functions]
        flags.append(UNMARKED if places else MISSING)
    if len(places) > 1:
        flags.append(TWICE)
    checks = [cell.source for cell in cells if cell.grade_id == f"{one.grade_id}-check"]
    if any(check.strip() != one.check.strip() for check in checks):
        flags.append(CHECK_CHANGED)
    of_it, places = {*places}, places[-MOST_PLACES:]
    written = [place for place in places if _attempted(cells[place].source, one.name)]
    foreign = ((at, cell.source) for at, cell in enumerate(cells) if cell.code and at not in of_it)
    others = [at for at, text in foreign if text.strip() not in ours and one.name in parsed(text).functions]
    new = [at for at in others[-MOST_PLACES:] if _attempted(cells[at].source, one.name)]
    text = next((c.source for c in cells if not c.code and c.source.strip() not in ours and _names(c, one.name)), "")
    if text and not written and not new:
        return Answer(one, text, flags=(*flags, IN_TEXT), problem=WHERE.format(name=one.name))
    if not places:
        return Answer(one, "", flags=tuple(flags))
    place = (written or places)[-1]  # of several cells, the last that is no stub
    answer = parsed(cells[place].source)
    check = next((at for at, cell in enumerate(cells) if cell.grade_id == f"{one.grade_id}-check"), place)
    if new and not answer.problem and not (written and _binds(answer, one.name)):
        place, answer = new[-1], parsed(cells[new[-1]].source)
        flags.append(NEW_CELL)
    elif any(place < at < check for at in others):  # the notebook's check gets the other one
        flags.append(ELSEWHERE)
    if answer.functions.get(one.name) not in (None, _parsed(one.stub).functions.get(one.name)):
        flags.append(OLD)
    own = [
        cell.source
        for at, cell in enumerate(cells[:place])
        if cell.code and cell.source.strip() not in ours and (cell.grade_id not in marks or at in written)
    ]
    before = [code.text for code in map(parsed, own) if not code.problem and code.text.strip()]
    return Answer(one, answer.text, tuple(before), tuple(flags), answer.problem)


def _names(cell: Cell, name: str) -> bool:
    """Return True if a text cell defines the function of that name, with or without ``` around it."""
    return bool(re.search(rf"^[ \t]*def[ \t]+{name}[ \t]*\(", cell.source, re.MULTILINE))


def _binds(code: _Code, name: str) -> bool:
    names = (node for node in ast.walk(ast.parse(code.text)) if isinstance(node, ast.Name))
    return name in code.functions or any(isinstance(one.ctx, ast.Store) and one.id == name for one in names)


def _attempted(source: str, name: str) -> bool:
    text, problem = plain_python(source)
    try:
        return bool(problem) or is_attempted(text, name)
    except (RecursionError, ValueError, MemoryError):
        return True
